#include "server/http/http_listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "server/identity/certificates.h"
#include "tests/testing/places.h"
#include "tests/unit/server/http/self_signed.h"

namespace tensord::http {
namespace {

using ::testing::HasSubstr;

int PortOf(const HttpListener& listener) {
  int port = 0;
  const std::string& address = listener.address();
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return port;
}

/// Two paths, one of which needs a token.
Routes TwoRoutes() {
  return {{"/open", {[] { return Answer{.body = "hello\n"}; }}},
          {"/shut",
           {.answer = [] { return Answer{.status = 503, .body = "no\n"}; },
            .needs_token = true}}};
}

std::unique_ptr<HttpListener> Listen(HttpOptions options = {}) {
  // The library makes what all requests share at the first one.
  // ThreadSanitizer, which does not see into it, would not know that others
  // wait for that.
  [[maybe_unused]] static const bool is_ready = [] {
    const auto listener =
        HttpListener::Start({.address = "127.0.0.1:0"}, TwoRoutes()).value();
    return httplib::Client("http://" + listener->address()).Get("/open") !=
           nullptr;
  }();
  options.address = "127.0.0.1:0";
  return HttpListener::Start(options, TwoRoutes()).value();
}

/// A client that is not a good one.
class RawClient {
 public:
  explicit RawClient(const HttpListener& listener)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(PortOf(listener)),
                        .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
  }
  RawClient(RawClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)) {}
  ~RawClient() {
    if (socket_ >= 0) close(socket_);
  }

  int socket() const { return socket_; }
  void Send(const std::string& text) {
    send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// All that comes until the end.
  std::string Receive() {
    std::string text;
    char buffer[1024];
    for (ssize_t got; (got = recv(socket_, buffer, sizeof(buffer), 0)) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  int socket_;
};

TEST(HttpListenerTest, AnswersWhatThereIs) {
  const auto listener = Listen();
  httplib::Client client("127.0.0.1", PortOf(*listener));
  const auto open = client.Get("/open");
  ASSERT_TRUE(open);
  EXPECT_EQ(open->status, 200);
  EXPECT_EQ(open->body, "hello\n");
  EXPECT_EQ(open->get_header_value("Content-Type"),
            "text/plain; charset=utf-8");
  EXPECT_EQ(open->get_header_value("Cache-Control"), "no-store");
  const auto shut = client.Get("/shut");
  ASSERT_TRUE(shut);
  EXPECT_EQ(shut->status, 503);
  EXPECT_EQ(client.Get("/elsewhere")->status, 404);
  EXPECT_EQ(client.Post("/open", "x", "text/plain")->status, 404);
  const auto head = client.Head("/open");
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->body, "");
}

TEST(HttpListenerTest, TokensAreWantedWhereTheyAre) {
  const std::string file = tensord::testing::TemporaryFolder() + "/token";
  std::ofstream(file) << "open sesame\n";
  const auto listener = Listen({.token_file = file});
  httplib::Client client("127.0.0.1", PortOf(*listener));
  const auto status = [&](const char* authorization) {
    return client.Get("/shut", {{"Authorization", authorization}})->status;
  };
  EXPECT_EQ(client.Get("/open")->status, 200);
  EXPECT_EQ(client.Get("/shut")->status, 401);
  EXPECT_EQ(status("Bearer open sesame"), 503);
  std::string body;
  for (const char* wrong : {"Bearer open sesamE", "Bearer open", "Bearer ",
                            "Basic open sesame", "open sesame"}) {
    const auto answer = client.Get("/shut", {{"Authorization", wrong}});
    EXPECT_EQ(answer->status, 401) << wrong;
    if (body.empty()) body = answer->body;
    EXPECT_EQ(answer->body, body);
  }
  std::ofstream(file) << "another\n";
  EXPECT_EQ(status("Bearer open sesame"), 401);
  EXPECT_EQ(status("Bearer another"), 503);
  std::filesystem::remove(file);
  EXPECT_EQ(status("Bearer another"), 401);
}

TEST(HttpListenerTest, AFileWithoutATokenIsRefused) {
  const std::string file = tensord::testing::TemporaryFolder() + "/empty";
  std::ofstream(file) << "\n";
  EXPECT_EQ(core::ReasonOf(
                HttpListener::Start(
                    {.address = "127.0.0.1:0", .token_file = file}, TwoRoutes())
                    .status()),
            "TOKEN_FILE_WRONG");
}

TEST(HttpListenerTest, SlowClientsHarmNobody) {
  const auto listener = Listen({.longest = absl::Minutes(10)});
  std::vector<RawClient> slow;
  httplib::Client client("127.0.0.1", PortOf(*listener));
  client.set_read_timeout(std::chrono::seconds(60));
  for (int i = 0; i < 64; ++i) {
    slow.emplace_back(*listener);
    slow.back().Send("GET /open HTTP/1.1\r\nX: ");
    const auto answer = client.Get("/open");
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->status, 200);
  }
}

TEST(HttpListenerTest, ACrowdThatSaysNothingHarmsNobody) {
  const auto listener = Listen({.longest = absl::Minutes(10)});
  std::vector<RawClient> crowd;
  for (int i = 0; i < 12; ++i) crowd.emplace_back(*listener);
  httplib::Client client("127.0.0.1", PortOf(*listener));
  client.set_read_timeout(std::chrono::seconds(60));
  const auto answer = client.Get("/open");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

TEST(HttpListenerTest, OneConnectionHasSomeSeconds) {
  const auto listener = Listen({.longest = absl::Milliseconds(50)});
  RawClient slow(*listener);
  slow.Send("GET /open HTTP/1.1\r\n");
  EXPECT_THAT(slow.Receive(), ::testing::Not(HasSubstr("200 OK")));
}

TEST(HttpListenerTest, LongRequestsAreNotRead) {
  const auto listener = Listen();
  RawClient greedy(*listener);
  greedy.Send("GET /open HTTP/1.1\r\n");
  for (int i = 0; i < 1000; ++i) greedy.Send("X-Header: 0123456789abcdef\r\n");
  greedy.Send("\r\n");
  EXPECT_THAT(greedy.Receive(), ::testing::Not(HasSubstr("200 OK")));
}

TEST(HttpListenerTest, GarbageIsRefused) {
  const auto listener = Listen({.longest = absl::Milliseconds(50)});
  for (const char* text :
       {"\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01\r\n\r\n",
        "POST /open HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"}) {
    RawClient client(*listener);
    client.Send(text);
    EXPECT_THAT(client.Receive(), ::testing::Not(HasSubstr("200 OK"))) << text;
  }
}

TEST(HttpListenerTest, APortHasOneListener) {
  const auto listener = Listen();
  EXPECT_EQ(core::ReasonOf(HttpListener::Start({.address = listener->address()},
                                               TwoRoutes())
                               .status()),
            "CANNOT_LISTEN");
}

TEST(HttpListenerTest, EndsWhileClientsWait) {
  auto listener = Listen();
  RawClient waiting(*listener);
  waiting.Send("GET");
  listener.reset();
  EXPECT_EQ(waiting.Receive(), "");
}

class HttpListenerTlsTest : public ::testing::Test {
 protected:
  HttpListenerTlsTest() { WriteSelfSigned("first", certificate_, key_); }

  std::unique_ptr<HttpListener> Secure() {
    certificates_ =
        server::Certificates::Load(
            {.certificate = certificate_, .key = key_, .client_ca = ""})
            .value();
    return Listen({.certificates = certificates_.get()});
  }
  /// What a client sees: the name of the certificate and the answer.
  static std::string Ask(const HttpListener& listener, int max_version = 0) {
    const std::unique_ptr<SSL_CTX, FreeSsl> context(
        SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_max_proto_version(context.get(), max_version);
    const SslSession session(SSL_new(context.get()));
    const RawClient client(listener);
    SSL_set_fd(session.get(), client.socket());
    if (SSL_connect(session.get()) != 1) return "";
    char name[64] = "";
    X509* const certificate = SSL_get1_peer_certificate(session.get());
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate),
                              NID_commonName, name, sizeof(name));
    X509_free(certificate);
    constexpr absl::string_view kRequest = "GET /open HTTP/1.1\r\n\r\n";
    SSL_write(session.get(), kRequest.data(), kRequest.size());
    std::string text;
    char buffer[1024];
    for (int got;
         (got = SSL_read(session.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return absl::StrCat(
        name, absl::EndsWith(text, "\r\n\r\nhello\n") ? " answers" : " fails");
  }

  const std::string certificate_ =
      tensord::testing::TemporaryFolder() + "/certificate.pem";
  const std::string key_ = tensord::testing::TemporaryFolder() + "/key.pem";
  std::unique_ptr<server::Certificates> certificates_;
};

TEST_F(HttpListenerTlsTest, SpeaksTls) {
  const auto listener = Secure();
  EXPECT_EQ(Ask(*listener), "first answers");
  EXPECT_EQ(Ask(*listener, TLS1_2_VERSION), "first answers");
  EXPECT_EQ(Ask(*listener, TLS1_1_VERSION), "");
  RawClient plain(*listener);
  plain.Send("GET /open HTTP/1.1\r\n\r\n");
  EXPECT_THAT(plain.Receive(), ::testing::Not(HasSubstr("hello")));
}

TEST_F(HttpListenerTlsTest, TakesNewCertificatesAndKeepsWhatIsGood) {
  const auto listener = Secure();
  EXPECT_EQ(Ask(*listener), "first answers");
  std::ofstream(certificate_) << "no certificate\n";
  EXPECT_FALSE(certificates_->Reload().ok());
  EXPECT_EQ(Ask(*listener), "first answers");
  WriteSelfSigned("second", certificate_, key_);
  EXPECT_TRUE(certificates_->Reload().ok());
  EXPECT_EQ(Ask(*listener), "second answers");
}

}  // namespace
}  // namespace tensord::http
