package drivers_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestGRPC_Codes(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		var code codes.Code
		_, _ = fmt.Sscan(md["code"][0], (*uint32)(&code))
		return status.Error(code, "as asked")
	}))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)

	c := dial(t, l.Addr().String())
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "code", fmt.Sprint(uint32(code)))
		err := c.Invoke(ctx, "/billing/Charge", &emptypb.Empty{}, &emptypb.Empty{})
		verdict := "terminal"
		switch code {
		case codes.Canceled, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Unavailable:
			verdict = "retry"
		case codes.Unknown, codes.Internal:
			verdict = "unknown"
		}
		means(t, code.String(), fmt.Errorf("charge: %w", err), "grpc."+code.String(), verdict)
	}
	over, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	means(t, "timeout", c.Invoke(over, "/billing/Charge", &emptypb.Empty{}, &emptypb.Empty{}), "grpc.DeadlineExceeded", "retry")
	means(t, "no listener", dial(t, closedPort(t)).Invoke(t.Context(), "/billing/Charge", &emptypb.Empty{}, &emptypb.Empty{}), "grpc.Unavailable", "retry")
}
