#include "server/rpc/reflection/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <utility>

#include "core/base/status.h"
#include "server/rpc/coroutine/patience.h"

namespace tensord::rpc {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using ::grpc::reflection::v1alpha::FileDescriptorResponse;

/// `file` after those that it imports, unless they were told.
void TellFile(const FileDescriptor& file, std::set<const FileDescriptor*>& told,
              FileDescriptorResponse& response) {
  if (!told.insert(&file).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) {
    TellFile(*file.dependency(i), told, response);
  }
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.add_file_descriptor_proto(proto.SerializeAsString());
}

}  // namespace

ReflectionService::ReflectionService(ServiceContext& context,
                                     std::vector<std::string> services)
    : Service(ServiceBeside<Request>("ServerReflection")),
      context_(context),
      services_(std::move(services)) {}

void ReflectionService::ServeOn(LoopGroup& loops) {
  loops.Serve(raw(), "ServerReflectionInfo", *this, &ReflectionService::Tell);
}

Task<absl::Status> ReflectionService::Tell(Call& call, Reader in,
                                           Writer<Response> out) {
  PatientReader reader(in, call, context_.transfer_idle);
  PatientWriter writer(out, call, context_.transfer_idle);
  Files told;
  while (ByteBuffer* const wire = co_await reader.Read()) {
    constexpr size_t kMostBytes = 1024;  // of names
    if (wire->Length() > kMostBytes) {
      co_return core::InvalidArgument("REQUEST_TOO_LONG", "the request has ",
                                      wire->Length(), " bytes, wanted at most ",
                                      kMostBytes);
    }
    Incoming<Request> request(context_.parser, call);
    const absl::Status parsed = co_await request.Parse(*wire);
    if (!parsed.ok()) co_return parsed;
    const Response response = AnswerTo(*request, told);
    // As a message, and as it goes over the wire.
    server::HostHold hold;
    const absl::Status held = hold.Take(
        context_.sessions.host_memory(), server::HostUse::kRequests,
        2 * static_cast<int64_t>(response.ByteSizeLong()), /*count=*/0);
    if (!held.ok()) co_return held;
    const absl::Status written = co_await writer.Write(response);
    if (!written.ok()) co_return written;
    reader.Progress();
  }
  co_return reader.failure();
}

ReflectionService::Response ReflectionService::AnswerTo(const Request& request,
                                                        Files& told) const {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  Response response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const auto not_found = [&] {
    response.mutable_error_response()->set_error_code(
        grpc::StatusCode::NOT_FOUND);
    response.mutable_error_response()->set_error_message(
        "there is nothing of that name");
  };
  const auto tell = [&](const FileDescriptor* file) {
    if (file == nullptr) return not_found();
    // Also what was told before, if it is asked for by name.
    told.erase(file);
    TellFile(*file, told, *response.mutable_file_descriptor_response());
  };
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      tell(pool.FindFileByName(request.file_by_filename()));
      break;
    case Request::kFileContainingSymbol:
      tell(pool.FindFileContainingSymbol(request.file_containing_symbol()));
      break;
    case Request::kFileContainingExtension: {
      const auto& wanted = request.file_containing_extension();
      const auto* const type =
          pool.FindMessageTypeByName(wanted.containing_type());
      const FieldDescriptor* const field =
          type == nullptr
              ? nullptr
              : pool.FindExtensionByNumber(type, wanted.extension_number());
      tell(field == nullptr ? nullptr : field->file());
      break;
    }
    case Request::kAllExtensionNumbersOfType: {
      const std::string& name = request.all_extension_numbers_of_type();
      const auto* const type = pool.FindMessageTypeByName(name);
      if (type == nullptr) {
        not_found();
        break;
      }
      std::vector<const FieldDescriptor*> extensions;
      pool.FindAllExtensions(type, &extensions);
      auto& numbers = *response.mutable_all_extension_numbers_response();
      numbers.set_base_type_name(name);
      for (const FieldDescriptor* const extension : extensions) {
        numbers.add_extension_number(extension->number());
      }
      break;
    }
    case Request::kListServices:
      for (const std::string& name : services_) {
        response.mutable_list_services_response()->add_service()->set_name(
            name);
      }
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(
          grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message(
          "the request asks for nothing");
  }
  return response;
}

}  // namespace tensord::rpc
