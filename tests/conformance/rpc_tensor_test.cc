// TensorService: success, each documented error, broken transfers.
#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

TEST_F(RpcConformance, CreateTensorDescribesWhatItMade) {
  v1::CreateTensorRequest request = CreateRequest({4, 8, 12});  // A0.4
  request.set_tensor_id("x");
  v1::Tensor tensor;
  ASSERT_THAT(Create(request, &tensor), IsOk());
  EXPECT_EQ(tensor.name(), session_ + "/tensors/x");
  EXPECT_THAT(tensor.layout().strides(), ::testing::ElementsAre(1, 4, 32));
  EXPECT_EQ(tensor.state(), v1::TENSOR_STATE_EMPTY);
  EXPECT_EQ(tensor.span_bytes(), 4 * 8 * 12 * 4);
  request.mutable_layout()->set_order(v1::ORDER_LAST_MODE_FASTEST);
  request.set_tensor_id("y");
  ASSERT_THAT(Create(request, &tensor), IsOk());
  EXPECT_THAT(tensor.layout().strides(), ::testing::ElementsAre(96, 12, 1));
}

TEST_F(RpcConformance, CreateTensorRefusesMalformedRequests) {
  using Edit = std::function<void(v1::CreateTensorRequest&)>;
  struct Case {
    grpc::StatusCode code;
    std::string reason;
    Edit edit;
  };
  const std::vector<Case> cases = {
      {grpc::NOT_FOUND, "SESSION_NOT_FOUND",
       [](auto& q) { q.set_session("sessions/none"); }},
      {grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN",
       [](auto& q) { q.set_element_type(v1::ELEMENT_TYPE_UNSPECIFIED); }},
      {grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN",
       [](auto& q) { q.set_element_type(static_cast<v1::ElementType>(77)); }},
      {grpc::INVALID_ARGUMENT, "TENSOR_ID_MALFORMED",
       [](auto& q) { q.set_tensor_id("a/b"); }},
      {grpc::INVALID_ARGUMENT, "NEGATIVE_EXTENT",
       [](auto& q) { q.mutable_layout()->set_extents(0, -2); }},
      {grpc::INVALID_ARGUMENT, "STRIDE_COUNT_MISMATCH",
       [](auto& q) { q.mutable_layout()->add_strides(1); }},
      {grpc::INVALID_ARGUMENT, "STRIDE_NOT_POSITIVE",  // A0.6
       [](auto& q) {
         q.mutable_layout()->add_strides(0);
         q.mutable_layout()->add_strides(1);
       }},
      {grpc::INVALID_ARGUMENT, "STRIDE_NOT_POSITIVE",
       [](auto& q) {
         q.mutable_layout()->add_strides(-1);
         q.mutable_layout()->add_strides(1);
       }},
      {grpc::INVALID_ARGUMENT, "NEGATIVE_OFFSET",
       [](auto& q) { q.mutable_layout()->set_offset(-1); }},
      {grpc::INVALID_ARGUMENT, "SIZE_OVERFLOW",
       [](auto& q) { q.mutable_layout()->set_extents(0, int64_t{1} << 61); }},
      {grpc::INVALID_ARGUMENT, "SIZE_OVERFLOW",
       [](auto& q) { q.mutable_layout()->set_offset(INT64_MAX); }},
      {grpc::INVALID_ARGUMENT, "TOO_MANY_MODES",
       [](auto& q) {
         for (int i = 0; i < 64; ++i) q.mutable_layout()->add_extents(1);
       }},
      {grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT",
       [](auto& q) { q.mutable_layout()->set_extents(0, 1 << 30); }},
  };
  for (const Case& c : cases) {
    v1::CreateTensorRequest request = CreateRequest({8, 8});
    c.edit(request);
    EXPECT_THAT(Create(request), FailsWith(c.code, c.reason))
        << request.ShortDebugString();
  }
  v1::CreateTensorRequest request = CreateRequest({8, 8});
  request.set_tensor_id("twice");
  EXPECT_THAT(Create(request), IsOk());
  EXPECT_THAT(Create(request),
              FailsWith(grpc::ALREADY_EXISTS, "TENSOR_ALREADY_EXISTS"));
  EXPECT_EQ(server_.used_bytes(), 256);
}

TEST_F(RpcConformance, ErrorsThatQuoteTheRequestArriveWhateverItHolds) {
  std::string accents;
  for (int i = 0; i < 500'000; ++i) accents += "\xc3\xa9";
  for (const std::string& session :
       {std::string(1'000'000, 'x'), accents, std::string(5000, '\n'),
        std::string("a\r\n\0\x01\x1b[2J\x7f%41", 14)}) {
    v1::CreateTensorRequest request = CreateRequest({4});
    request.set_session(session);
    const Outcome outcome = Create(request);
    EXPECT_THAT(outcome, FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
    const std::string message = outcome.status.error_message();
    EXPECT_LE(message.size(), 2000u);
    EXPECT_THAT(message, HasSubstr(session.substr(0, 1900)));
  }
}

TEST_F(RpcConformance, OutOfMemorySaysAskedAndLeftAndTheNextRequestWorks) {
  const Outcome outcome = Create(CreateRequest({1 << 28}));
  EXPECT_THAT(outcome, FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_THAT(outcome.status.error_message(), HasSubstr("1073741824"));
  EXPECT_THAT(outcome.status.error_message(), HasSubstr("67108864"));
  EXPECT_THAT(Create(CreateRequest({1 << 20})), IsOk());
}

TEST_F(RpcConformance, GapsOfALayoutReadAsZeros) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({2, 2}, {1, 4}), &tensor), IsOk());
  EXPECT_EQ(tensor.span_bytes(), 24);
  v1::PermuteRequest request = Permutation(Filled({2, 2}));
  *request.mutable_d() = v1::Output();
  request.mutable_d()->set_tensor(tensor.name());
  request.mutable_d()->add_modes(1);
  request.mutable_d()->add_modes(2);
  ASSERT_THAT(Permute(request), IsOk());
  EXPECT_EQ(Values(tensor.name()), (std::vector<float>{0, 1, 0, 0, 2, 3}));
}

TEST_F(RpcConformance, UploadInChunksArrivesWhole) {
  const std::string name = Filled({1000, 1000});
  EXPECT_EQ(Describe(name).state(), v1::TENSOR_STATE_READY);
  const std::vector<float> values = Values(name);
  ASSERT_EQ(values.size(), 1000u * 1000u);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>(i));
  }
}

TEST_F(RpcConformance, AnyByteButZeroIsTrueInABool) {
  const std::string sent("\x00\x01\x02\xff", 4);
  const std::string stored("\x00\x01\x01\x01", 4);
  v1::CreateTensorRequest create = CreateRequest({4});
  create.set_element_type(v1::ELEMENT_TYPE_BOOL);
  v1::Tensor tensor;
  ASSERT_THAT(Create(create, &tensor), IsOk());
  v1::UploadTensorRequest chunk;
  chunk.set_tensor(tensor.name());
  chunk.set_crc32c(core::Crc32c(sent));
  chunk.set_data(sent);
  ASSERT_THAT(Upload({chunk}), IsOk());
  v1::DownloadTensorRequest download;
  download.set_tensor(tensor.name());
  std::string data;
  ASSERT_THAT(Download(download, &data), IsOk());
  EXPECT_EQ(data, stored);

  v1::PermuteRequest permute;
  permute.set_session(session_);
  v1::InlineTensor& a = *permute.mutable_a()->mutable_inline_();
  a.set_element_type(v1::ELEMENT_TYPE_BOOL);
  a.mutable_layout()->add_extents(4);
  a.set_data(sent);
  permute.mutable_a()->add_modes(1);
  permute.mutable_d()->add_modes(1);
  permute.mutable_d()->set_inline_(true);
  v1::Result result;
  ASSERT_THAT(Permute(permute, &result), IsOk());
  EXPECT_EQ(result.data(), stored);
}

TEST_F(RpcConformance, WrongChunksAreRefusedAndTheUploadResumes) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({8}), &tensor), IsOk());
  const std::string& name = tensor.name();
  const std::vector<float> v = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::span<const float> all(v);
  const auto chunk = [&](bool first, int from, int count) {
    return Chunk(first ? name : "", from * 4, all.subspan(from, count));
  };
  v1::UploadTensorRequest corrupt = chunk(false, 2, 2);
  corrupt.mutable_data()->at(3) ^= 1;
  v1::UploadTensorRequest renamed = chunk(false, 2, 2);
  renamed.set_tensor(name);
  v1::UploadTensorRequest negative = chunk(false, 2, 2);
  negative.set_offset_bytes(-8);
  v1::UploadTensorRequest big = chunk(false, 2, 2);
  big.set_data(std::string(3 << 20, 'x'));
  struct Case {
    v1::UploadTensorRequest second;
    grpc::StatusCode code;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {chunk(false, 0, 2), grpc::INVALID_ARGUMENT, "CHUNK_OUT_OF_ORDER"},
      {chunk(false, 4, 2), grpc::INVALID_ARGUMENT, "CHUNK_OUT_OF_ORDER"},
      {corrupt, grpc::DATA_LOSS, "CHUNK_CORRUPT"},
      {renamed, grpc::INVALID_ARGUMENT, "CHUNK_MALFORMED"},
      {negative, grpc::INVALID_ARGUMENT, "CHUNK_MALFORMED"},
      {big, grpc::INVALID_ARGUMENT, "CHUNK_MALFORMED"},
      {Chunk("", 8, std::vector<float>(7)), grpc::INVALID_ARGUMENT,
       "CHUNK_OUT_OF_RANGE"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(Upload({chunk(true, 0, 2), c.second}),
                FailsWith(c.code, c.reason));
    EXPECT_EQ(Describe(name).state(), v1::TENSOR_STATE_PARTIAL);
    EXPECT_EQ(Describe(name).committed_bytes(), 8) << c.reason;
  }
  EXPECT_THAT(Upload({chunk(true, 4, 2)}),
              FailsWith(grpc::INVALID_ARGUMENT, "CHUNK_OUT_OF_ORDER"));
  EXPECT_THAT(Permute(Permutation(name)),
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_COUNT_MISMATCH"));
  v1::UploadTensorResponse response;
  EXPECT_THAT(Upload({chunk(true, 2, 3), chunk(false, 5, 3)}, &response),
              IsOk());
  EXPECT_EQ(response.tensor().state(), v1::TENSOR_STATE_READY);
  EXPECT_EQ(Values(name), v);
}

TEST_F(RpcConformance, UploadRightBehindACreationThatStillRunsArrives) {
  Blocker blocker(server_.device().worker());
  v1::CreateTensorRequest create = CreateRequest({2, 2}, {1, 4});
  create.set_tensor_id("slow");
  std::thread creator([&] { EXPECT_THAT(Create(create), IsOk()); });
  AwaitQueued(1);
  const std::vector<float> v = {0, 1, 0, 0, 2, 3};
  const std::string name = session_ + "/tensors/slow";
  EXPECT_THAT(Upload({Chunk(name, 0, v)}), IsOk());
  blocker.Release();
  creator.join();
  EXPECT_EQ(Values(name), v);
}

TEST_F(RpcConformance, UploadNeedsATensor) {
  EXPECT_THAT(Upload({}), FailsWith(grpc::INVALID_ARGUMENT, "CHUNK_MALFORMED"));
  EXPECT_THAT(Upload({Chunk("", 0, {})}),
              FailsWith(grpc::INVALID_ARGUMENT, "TENSOR_NAME_MALFORMED"));
  EXPECT_THAT(Upload({Chunk(session_ + "/tensors/none", 0, {})}),
              FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
  EXPECT_THAT(Upload({Chunk("sessions/none/tensors/t", 0, {})}),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcConformance, SecondUploadToATensorIsRefusedWhileOneRuns) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({8}), &tensor), IsOk());
  const std::vector<float> v(8, 1.0f);
  grpc::ClientContext context;
  v1::UploadTensorResponse response;
  const auto first = tensors_->UploadTensor(&context, &response);
  ASSERT_TRUE(first->Write(Chunk(tensor.name(), 0, std::span(v).first(4))));
  EXPECT_TRUE(
      Soon([&] { return Describe(tensor.name()).committed_bytes() >= 16; }));
  EXPECT_THAT(Upload({Chunk(tensor.name(), 0, v)}),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_BUSY"));
  ASSERT_TRUE(first->Write(Chunk("", 16, std::span(v).last(4))));
  first->WritesDone();
  EXPECT_TRUE(first->Finish().ok());
  EXPECT_EQ(Values(tensor.name()), v);
}

TEST_F(RpcConformance, UploadThatIsCancelledLeavesWhatCameAndCanResume) {
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({8}), &tensor), IsOk());
  const std::vector<float> v = {0, 1, 2, 3, 4, 5, 6, 7};
  {
    grpc::ClientContext context;
    v1::UploadTensorResponse response;
    const auto writer = tensors_->UploadTensor(&context, &response);
    ASSERT_TRUE(writer->Write(Chunk(tensor.name(), 0, std::span(v).first(4))));
    EXPECT_TRUE(
        Soon([&] { return Describe(tensor.name()).committed_bytes() >= 16; }));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::CANCELLED);
  }
  Outcome resumed;
  for (int tries = 0; tries < 100; ++tries) {
    resumed = Upload({Chunk(tensor.name(), 16, std::span(v).last(4))});
    if (resumed.reason != "TENSOR_BUSY") break;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(resumed, IsOk());
  EXPECT_EQ(Values(tensor.name()), v);
}

TEST_F(RpcConformance, DownloadSendsTheRangeAskedFor) {
  v1::DownloadTensorRequest request;
  request.set_tensor(Filled({100}));
  request.set_offset_bytes(40);
  request.set_length_bytes(80);
  request.set_chunk_bytes(24);
  std::string data;
  ASSERT_THAT(Download(request, &data), IsOk());
  ASSERT_EQ(data.size(), 80u);
  float first;
  std::memcpy(&first, data.data(), 4);
  EXPECT_EQ(first, 10.0f);
}

TEST_F(RpcConformance, DownloadRefusesWhatIsNotThere) {
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({8}), &empty), IsOk());
  v1::DownloadTensorRequest request;
  request.set_tensor(empty.name());
  std::string data;
  EXPECT_THAT(Download(request, &data),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  request.set_tensor(Filled({8}));
  for (const auto& [offset, length] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 0}, {33, 0}, {0, 33}, {8, INT64_MAX}, {0, -1}}) {
    request.set_offset_bytes(offset);
    request.set_length_bytes(length);
    data.clear();
    EXPECT_THAT(Download(request, &data),
                FailsWith(grpc::INVALID_ARGUMENT, "RANGE_OUTSIDE_TENSOR"));
  }
  request.set_tensor(session_ + "/tensors/none");
  EXPECT_THAT(Download(request, &data),
              FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
}

TEST_F(RpcConformance, DownloadOfATensorWrittenMeanwhileIsAborted) {
  // Larger than what connections buffer: the server is still sending.
  constexpr int64_t kExtent = 6 << 20;
  const std::string name = Filled({kExtent});
  v1::DownloadTensorRequest request;
  request.set_tensor(name);
  grpc::ClientContext context;
  const auto reader = tensors_->DownloadTensor(&context, request);
  v1::DownloadTensorResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  v1::PermuteRequest write;
  write.set_session(session_);
  *write.mutable_a() = Named(Filled({kExtent}), {1});
  *write.mutable_d() = New({1});
  write.mutable_d()->set_tensor(name);
  write.mutable_alpha()->set_real(2);
  ASSERT_THAT(Permute(write), IsOk());
  // What was on its way by then is what the tensor held before.
  do {
    ASSERT_EQ(chunk.crc32c(), core::Crc32c(chunk.data()));
    std::vector<float> values(chunk.data().size() / sizeof(float));
    std::memcpy(values.data(), chunk.data().data(), chunk.data().size());
    const auto first = static_cast<float>(chunk.offset_bytes() / 4);
    ASSERT_EQ(values.front(), first);
    ASSERT_EQ(values.back(), first + static_cast<float>(values.size() - 1));
  } while (reader->Read(&chunk));
  const grpc::Status status = reader->Finish();
  EXPECT_THAT(OutcomeOf(status, context),
              FailsWith(grpc::ABORTED, "TENSOR_CHANGED"));
}

TEST_F(RpcConformance, ListTensorsPagesByName) {
  for (const char* id : {"c", "a", "b"}) {
    v1::CreateTensorRequest request = CreateRequest({2});
    request.set_tensor_id(id);
    ASSERT_THAT(Create(request), IsOk());
  }
  v1::ListTensorsRequest request;
  request.set_session(session_);
  request.set_page_size(2);
  v1::ListTensorsResponse response;
  const auto list = [&] {
    return Unary(&v1::TensorService::Stub::ListTensors, *tensors_, request,
                 &response);
  };
  ASSERT_THAT(list(), IsOk());
  ASSERT_EQ(response.tensors_size(), 2);
  EXPECT_EQ(response.tensors(0).name(), session_ + "/tensors/a");
  request.set_page_token(response.next_page_token());
  ASSERT_THAT(list(), IsOk());
  ASSERT_EQ(response.tensors_size(), 1);
  EXPECT_EQ(response.tensors(0).name(), session_ + "/tensors/c");
  EXPECT_EQ(response.next_page_token(), "");
  request.set_page_size(-1);
  EXPECT_THAT(list(), FailsWith(grpc::INVALID_ARGUMENT, "PAGE_SIZE_NEGATIVE"));
  request.set_session("sessions/none");
  EXPECT_THAT(list(), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcConformance, DescribeAndDeleteTensorNeedATensor) {
  const std::string name = Filled({4});
  EXPECT_THAT(Delete(name), IsOk());
  EXPECT_EQ(server_.used_bytes(), 0);
  EXPECT_THAT(Delete(name), FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
  EXPECT_THAT(Delete("nonsense"),
              FailsWith(grpc::INVALID_ARGUMENT, "TENSOR_NAME_MALFORMED"));
  v1::DescribeTensorRequest request;
  request.set_tensor(name);
  v1::DescribeTensorResponse response;
  EXPECT_THAT(Unary(&v1::TensorService::Stub::DescribeTensor, *tensors_,
                    request, &response),
              FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
}

TEST_F(RpcConformance, DeleteTensorsEndsManyNamesInOneCall) {
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back(Filled({4}));
  v1::DeleteTensorsResponse response;
  EXPECT_THAT(DeleteAll(names, &response), IsOk());
  EXPECT_EQ(response.deleted_count(), 20);
  EXPECT_EQ(server_.used_bytes(), 0);
  EXPECT_THAT(DeleteAll({}, &response), IsOk());
  EXPECT_EQ(response.deleted_count(), 0);
}

TEST_F(RpcConformance, DeleteTensorsDeletesAllButWhatItCannot) {
  const std::string first = Filled({4}), last = Filled({4});
  v1::DeleteTensorsResponse response;
  Outcome outcome = DeleteAll(
      {first, session_ + "/tensors/none", "nonsense", last}, &response);
  EXPECT_THAT(outcome, FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
  EXPECT_THAT(outcome.status.error_message(), HasSubstr("2 of 4 tensors"));
  EXPECT_EQ(server_.used_bytes(), 0);
  EXPECT_THAT(DeleteAll({"nonsense"}, &response),
              FailsWith(grpc::INVALID_ARGUMENT, "TENSOR_NAME_MALFORMED"));

  const std::string kept = Filled({4});
  EXPECT_THAT(DeleteAll(std::vector<std::string>(1001, kept), &response),
              FailsWith(grpc::INVALID_ARGUMENT, "TOO_MANY_NAMES"));
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open({}, &opened), IsOk());
  session_ = opened.session().name();
  EXPECT_THAT(DeleteAll({kept}, &response),
              FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
  EXPECT_EQ(Describe(kept).state(), v1::TENSOR_STATE_READY);
  session_ = "sessions/none";
  EXPECT_THAT(DeleteAll({kept}, &response),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
}

TEST_F(RpcConformance, CopyTensorCopiesToAnotherSession) {
  const std::string source = Filled({3, 2});
  // The last device: another one where there are several.
  v1::OpenSessionRequest open;
  open.set_device(server_.engine().devices().back()->info().name);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open(open, &opened), IsOk());
  v1::CopyTensorRequest request;
  request.set_source(source);
  request.set_session(opened.session().name());
  request.set_tensor_id("copy");
  v1::CopyTensorResponse response;
  const auto copy = [&] {
    return Unary(&v1::TensorService::Stub::CopyTensor, *tensors_, request,
                 &response);
  };
  ASSERT_THAT(copy(), IsOk());
  EXPECT_EQ(response.tensor().name(),
            opened.session().name() + "/tensors/copy");
  EXPECT_EQ(response.tensor().state(), v1::TENSOR_STATE_READY);
  EXPECT_EQ(Values(response.tensor().name()),
            (std::vector<float>{0, 1, 2, 3, 4, 5}));

  EXPECT_THAT(copy(), FailsWith(grpc::ALREADY_EXISTS, "TENSOR_ALREADY_EXISTS"));
  request.set_tensor_id("");
  request.mutable_layout()->mutable_extents()->Add(3);
  request.mutable_layout()->mutable_extents()->Add(2);
  request.mutable_layout()->set_order(v1::ORDER_LAST_MODE_FASTEST);
  EXPECT_THAT(copy(), FailsWith(grpc::INVALID_ARGUMENT, "LAYOUT_DIFFERS"));
  request.clear_layout();
  request.set_session("sessions/none");
  EXPECT_THAT(copy(), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
  request.set_session(opened.session().name());
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({2}), &empty), IsOk());
  request.set_source(empty.name());
  EXPECT_THAT(copy(), FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  const int64_t held =
      server_.engine().devices().back()->memory_statistics().used_bytes;
  ASSERT_THAT(Close(opened.session().name()), IsOk());
  EXPECT_EQ(server_.engine().devices().back()->memory_statistics().used_bytes,
            held - 6 * static_cast<int64_t>(sizeof(float)));
}

TEST_F(RpcConformance, CopyTensorCopiesIntoTheLayoutAskedFor) {
  v1::CopyTensorRequest request;
  request.set_source(Filled({2, 3}));
  request.set_tensor_id("copy");
  request.mutable_layout()->add_extents(2);
  request.mutable_layout()->add_extents(3);
  request.mutable_layout()->set_order(v1::ORDER_LAST_MODE_FASTEST);
  v1::CopyTensorResponse response;
  const auto copy = [&] {
    return Unary(&v1::TensorService::Stub::CopyTensor, *tensors_, request,
                 &response);
  };
  ASSERT_THAT(copy(), IsOk());
  EXPECT_EQ(response.tensor().state(), v1::TENSOR_STATE_READY);
  EXPECT_EQ(Values(response.tensor().name()),
            (std::vector<float>{0, 2, 4, 1, 3, 5}));
  EXPECT_THAT(copy(), FailsWith(grpc::ALREADY_EXISTS, "TENSOR_ALREADY_EXISTS"));
  request.set_tensor_id("other");
  request.mutable_layout()->set_extents(1, 4);
  EXPECT_THAT(copy(),
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH"));
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({2, 3}), &empty), IsOk());
  request.clear_layout();
  request.set_source(empty.name());
  EXPECT_THAT(copy(), FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  request.set_source("sessions/none/tensors/t");
  EXPECT_THAT(copy(), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
  EXPECT_EQ(server_.sessions().tensor_count(), 3);
}

}  // namespace
}  // namespace tensord
