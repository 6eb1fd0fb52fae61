package notify

import (
	"context"
	"net"
	"testing"
)

// A mail server accepts connections and is silent. The try waits for it no longer than it may.
func TestMail_ASilentServerEndsWithTheTry(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := "smtp://" + l.Addr().String() + "/?fromAddress=siding@example.com&toAddresses=oncall@example.com"
	service, err := locate(address)
	if err != nil {
		t.Fatal(err)
	}
	send, err := sender(service, address)
	if err != nil {
		t.Fatal(err)
	}
	trying, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- send(newExchange(trying, nil), &Message{Title: "t"}) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	if err := <-ended; err == nil {
		t.Error("it counts as accepted")
	}
}
