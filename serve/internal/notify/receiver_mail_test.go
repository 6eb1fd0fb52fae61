package notify_test

import (
	"encoding/base64"
	"io"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/notify"
)

// delivered is what a mail server got of one message.
type delivered struct {
	user, from string
	to         []string
	mail       *mail.Message
	body       string
}

// mailServer is a server of RFC 5321 with what a client needs to deliver a message: a login, an
// envelope and the text.
func mailServer(t *testing.T) (address string, got chan delivered) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got = make(chan delivered, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if err := receive(textproto.NewConn(conn), got); err != nil {
				t.Errorf("the mail server: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return l.Addr().String(), got
}

// receive answers one client until it leaves.
func receive(c *textproto.Conn, got chan<- delivered) error {
	defer c.Close()
	var d delivered
	answer := "220 mail.example.com"
	for {
		if err := c.PrintfLine("%s", answer); err != nil {
			return err
		}
		line, err := c.ReadLine()
		if err != nil {
			return err
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch answer = "250 ok"; verb {
		case "EHLO":
			answer = "250-mail.example.com\r\n250 AUTH PLAIN"
		case "AUTH":
			secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
			if err != nil {
				return err
			}
			d.user, answer = string(secret), "235 ok"
		case "MAIL":
			d.from = rest
		case "RCPT":
			if strings.Contains(rest, "nobody@") {
				answer = "550 no such user"
				break
			}
			d.to = append(d.to, rest)
		case "DATA":
			if err := c.PrintfLine("354 go on"); err != nil {
				return err
			}
			if d.mail, err = mail.ReadMessage(c.DotReader()); err != nil {
				return err
			}
			body, err := io.ReadAll(d.mail.Body)
			if err != nil {
				return err
			}
			d.body = string(body)
			got <- d
		case "QUIT":
			return c.PrintfLine("221 bye")
		default:
			answer = "502 " + verb
		}
	}
}

// A mail has the title as its subject, and the rest and the link as its text.
func TestReceiver_AMailHasSubjectAndLink(t *testing.T) {
	t.Parallel()
	address, got := mailServer(t)
	r := runs(t, "smtp://user:password@"+address+"/?fromAddress=siding@example.com&toAddresses=oncall@example.com")
	for _, title := range []string{"[page] orders.dlq: 120 letters open", "[over] orders.dlq: 120 letters open"} {
		sends(t, r, notify.Message{Title: title, Text: "since now", Link: "http://siding/topics/orders.dlq"})
		d := <-got
		if d.user != "\x00user\x00password" || !strings.Contains(d.from, "<siding@example.com>") || len(d.to) != 1 || !strings.Contains(d.to[0], "<oncall@example.com>") {
			t.Errorf("the envelope is by %q, %s, %v", d.user, d.from, d.to)
		}
		if subject, to := d.mail.Header.Get("Subject"), d.mail.Header.Get("To"); subject != title || to != "oncall@example.com" {
			t.Errorf("the subject is %q, to %q", subject, to)
		}
		if d.body != "since now\nhttp://siding/topics/orders.dlq\n" {
			t.Errorf("the text is %q", d.body)
		}
	}
}

// One of two addresses is gone. The other one gets the mail, once, and the end says which is not.
func TestReceiver_AMailReachesThoseWhoAreThere(t *testing.T) {
	t.Parallel()
	address, got := mailServer(t)
	r := runs(t, "smtp://user:password@"+address+"/?fromAddress=siding@example.com&toAddresses=nobody@example.com,oncall@example.com")
	err := <-ends(t, r, notify.Message{Title: "t"})
	if err == nil || !strings.Contains(err.Error(), "550 ") {
		t.Errorf("it ended with %v", err)
	}
	if d := <-got; len(d.to) != 1 || len(got) > 0 {
		t.Errorf("the envelope is to %v, and %d more mails came", d.to, len(got))
	}
}

// A title has the names of classes, which come from other programs. It begins no header of a mail.
func TestReceiver_ATitleIsNoHeaderOfAMail(t *testing.T) {
	t.Parallel()
	address, got := mailServer(t)
	sends(t, runs(t, "smtp://user:password@"+address+"/?fromAddress=siding@example.com&toAddresses=oncall@example.com"), notify.Message{Title: "x\r\nBcc: other@example.com\r\n\r\nbody"})
	if d := <-got; d.mail.Header.Get("Bcc") != "" || strings.Contains(d.body, "body") {
		t.Errorf("the mail has %v: %q", d.mail.Header, d.body)
	}
}
