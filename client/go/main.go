// Contracts two matrices with nothing but the stubs that Go's generators make of the protos.
//
// What a client in any language does: open a session, upload in chunks with checksums, contract, download, close.
//
// Usage: contract ADDRESS
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	tensord "tensord/v1"
)

const chunkBytes = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func must(err error) {
	if err == nil {
		return
	}
	for _, detail := range status.Convert(err).Details() {
		if detail, ok := detail.(*tensord.ErrorDetail); ok {
			log.Fatalf("%s: %v", detail.Reason, err)
		}
	}
	log.Fatal(err)
}

// upload creates a float64 tensor of rows in C order, fills it and returns its name.
func upload(ctx context.Context, tensors tensord.TensorServiceClient, session string, extents []int64, values []float64) string {
	created, err := tensors.CreateTensor(ctx, &tensord.CreateTensorRequest{
		Session:     session,
		ElementType: tensord.ElementType_ELEMENT_TYPE_FLOAT64,
		Layout:      &tensord.Layout{Extents: extents, Order: tensord.Order_ORDER_LAST_MODE_FASTEST},
	})
	must(err)
	data := make([]byte, 8*len(values))
	for i, value := range values {
		binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(value))
	}
	stream, err := tensors.UploadTensor(ctx)
	must(err)
	name := created.Tensor.Name // of the first chunk alone
	for offset := 0; offset < len(data); offset += chunkBytes {
		end := offset + chunkBytes
		if end > len(data) {
			end = len(data)
		}
		chunk := data[offset:end]
		must(stream.Send(&tensord.UploadTensorRequest{
			Tensor:      name,
			OffsetBytes: int64(offset),
			Crc32C:      crc32.Checksum(chunk, castagnoli),
			Data:        chunk,
		}))
		name = ""
	}
	uploaded, err := stream.CloseAndRecv()
	must(err)
	return uploaded.Tensor.Name
}

// download returns the elements of a float64 tensor.
func download(ctx context.Context, tensors tensord.TensorServiceClient, name string) []float64 {
	stream, err := tensors.DownloadTensor(ctx, &tensord.DownloadTensorRequest{Tensor: name})
	must(err)
	var data []byte
	for {
		chunk, err := stream.Recv()
		if err == io.EOF {
			break
		}
		must(err)
		if chunk.OffsetBytes != int64(len(data)) || chunk.Crc32C != crc32.Checksum(chunk.Data, castagnoli) {
			log.Fatal("a chunk is not what was sent")
		}
		data = append(data, chunk.Data...)
	}
	values := make([]float64, len(data)/8)
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return values
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connection, err := grpc.DialContext(ctx, os.Args[1], grpc.WithInsecure())
	must(err)
	sessions := tensord.NewSessionServiceClient(connection)
	tensors := tensord.NewTensorServiceClient(connection)
	compute := tensord.NewComputeServiceClient(connection)

	const rows, inner, columns = 300, 500, 200
	valuesOfA, valuesOfB := make([]float64, rows*inner), make([]float64, inner*columns)
	for i := range valuesOfA {
		valuesOfA[i] = float64(i % 7)
	}
	for i := range valuesOfB {
		valuesOfB[i] = float64(i % 11)
	}

	opened, err := sessions.OpenSession(ctx, &tensord.OpenSessionRequest{Job: "go"})
	must(err)
	session := opened.Session.Name
	a := upload(ctx, tensors, session, []int64{rows, inner}, valuesOfA)
	b := upload(ctx, tensors, session, []int64{inner, columns}, valuesOfB)
	const i, j, k = 0, 1, 2
	contracted, err := compute.Contract(ctx, &tensord.ContractRequest{
		Session: session,
		A:       &tensord.Operand{Source: &tensord.Operand_Tensor{Tensor: a}, Modes: []int32{i, k}},
		B:       &tensord.Operand{Source: &tensord.Operand_Tensor{Tensor: b}, Modes: []int32{k, j}},
		D:       &tensord.Output{Modes: []int32{i, j}, Order: tensord.Order_ORDER_LAST_MODE_FASTEST},
	})
	must(err)
	c := download(ctx, tensors, contracted.Result.Tensor.Name)
	_, err = sessions.CloseSession(ctx, &tensord.CloseSessionRequest{Session: session})
	must(err)

	for row := 0; row < rows; row++ { // whole numbers: exact in any order
		for column := 0; column < columns; column++ {
			sum := 0.0
			for n := 0; n < inner; n++ {
				sum += valuesOfA[row*inner+n] * valuesOfB[n*columns+column]
			}
			if c[row*columns+column] != sum {
				log.Fatalf("c[%d, %d] is %g, wanted %g", row, column, c[row*columns+column], sum)
			}
		}
	}
	fmt.Printf("computed by %s, all %d elements as they should be\n", contracted.Result.Report.Kernel, len(c))
}
