package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	netsmtp "net/smtp"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/email/smtp"
)

// sendMail sends a message as one mail to all addresses. The library's own one waits without an end
// for a server that is silent. If the server takes only some of the addresses, they get the mail,
// and the error says which one it refuses.
func sendMail(x *exchange, cfg *smtp.Config, m *Message) error {
	cfg.FixEmailTags()
	c, err := dialMail(x.ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	host := cfg.ClientHost
	if host == "auto" {
		name, _ := os.Hostname()
		host = cmp.Or(name, "localhost")
	}
	if err := c.Hello(host); err != nil {
		return err
	}
	if err := secure(c, cfg); err != nil {
		return err
	}
	if err := c.Mail(cfg.FromAddress); err != nil {
		return err
	}
	var refused []error
	for _, to := range cfg.ToAddresses {
		err := c.Rcpt(to)
		if err != nil && !isRefusal(err) {
			return err
		}
		if err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) == len(cfg.ToAddresses) {
		return errors.Join(refused...)
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if err := writeMail(w, cfg, m); err != nil {
		return err
	}
	x.sent.Store(true)
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // the mail is accepted, whatever follows
	return errors.Join(refused...)
}

// dialMail connects to the server of a receiver, until ctx ends.
func dialMail(ctx context.Context, cfg *smtp.Config) (*netsmtp.Client, error) {
	address := net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
	dial := (&net.Dialer{}).DialContext
	if cfg.Encryption == smtp.EncImplicitTLS || cfg.Encryption == smtp.EncAuto && cfg.Port == smtp.ImplicitTLSPort {
		dial = (&tls.Dialer{Config: mailTLS(cfg)}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	c, err := netsmtp.NewClient(conn, cfg.Host)
	if err != nil {
		conn.Close()
	}
	return c, err
}

func mailTLS(cfg *smtp.Config) *tls.Config {
	return &tls.Config{ServerName: cfg.Host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: cfg.SkipTLSVerify} //nolint:gosec // if the URL asks for it
}

// secure begins TLS where the server has it, and logs in.
func secure(c *netsmtp.Client, cfg *smtp.Config) error {
	if _, is := c.TLSConnectionState(); cfg.UseStartTLS && !is {
		switch has, _ := c.Extension("STARTTLS"); {
		case has:
			if err := c.StartTLS(mailTLS(cfg)); err != nil {
				return err
			}
		case cfg.RequireStartTLS:
			return errors.New("the mail server has no STARTTLS, which the URL requires")
		}
	}
	switch cfg.Auth {
	case smtp.AuthPlain:
		return c.Auth(netsmtp.PlainAuth("", cfg.Username, cfg.Password, cfg.Host))
	case smtp.AuthCRAMMD5:
		return c.Auth(netsmtp.CRAMMD5Auth(cfg.Username, cfg.Password))
	case smtp.AuthOAuth2:
		return c.Auth(smtp.OAuth2Auth(cfg.Username, cfg.Password))
	}
	return nil
}

// writeMail writes the headers and the text of a mail. What a title has of control characters is
// encoded, so it begins no header.
func writeMail(w io.Writer, cfg *smtp.Config, m *Message) error {
	kind, text := "text/plain", m.rest()
	if cfg.UseHTML {
		kind, text = "text/html", "<pre>"+html.EscapeString(text)+"</pre>"
	}
	from := mail.Address{Name: cfg.FromName, Address: cfg.FromAddress}
	if _, err := fmt.Fprintf(w, "Subject: %s\r\nDate: %s\r\nTo: %s\r\nFrom: %s\r\nMIME-Version: 1.0\r\nContent-Type: %s; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n",
		mime.QEncoding.Encode("utf-8", m.Title), time.Now().Format(time.RFC1123Z), strings.Join(cfg.ToAddresses, ", "), &from, kind); err != nil {
		return err
	}
	body := quotedprintable.NewWriter(w)
	if _, err := io.WriteString(body, text); err != nil {
		return err
	}
	return body.Close()
}
