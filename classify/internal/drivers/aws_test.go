package drivers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// send calls a service that answers with a status and a code.
func send(t *testing.T, status int, code string) error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		if code != "" {
			_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#%s","message":"as asked"}`, code)
		}
	}))
	defer s.Close()
	return sendTo(t, s.URL)
}

func sendTo(t *testing.T, url string) error {
	t.Helper()
	c := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(url), Region: "eu-central-1", Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: aws.String("x")})
	return err
}

func TestAWS_WhatItsSDKTriesAgainIsRetried(t *testing.T) {
	t.Parallel()
	for _, codes := range []map[string]struct{}{retry.DefaultThrottleErrorCodes, retry.DefaultRetryableErrorCodes} {
		for code := range codes {
			means(t, code, send(t, http.StatusBadRequest, code), "aws."+code, "retry")
		}
	}
	means(t, "not its fault", send(t, http.StatusBadRequest, "InvalidAddress"), "http.400", "terminal")
	means(t, "denied", send(t, http.StatusForbidden, "AccessDeniedException"), "http.403", "terminal")
	means(t, "unavailable", send(t, http.StatusServiceUnavailable, ""), "http.503", "retry")
	means(t, "bad gateway", send(t, http.StatusBadGateway, ""), "http.502", "retry")
	means(t, "internal", send(t, http.StatusInternalServerError, "InternalFailure"), "http.500", "unknown")
	means(t, "no listener", sendTo(t, "http://"+closedPort(t)), "net.refused", "retry")
}
