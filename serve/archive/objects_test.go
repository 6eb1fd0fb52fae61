package archive

import (
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Storage that takes connections and says nothing is given up: it would keep the retentions of
// other topics waiting. The client of AWS waits for ever by itself.
func TestObjects_GiveUpSilentStorage(t *testing.T) {
	t.Parallel()
	o, err := newObjects("letters", S3{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	client, ok := o.client.Options().HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		t.Fatalf("the client is a %T", o.client.Options().HTTPClient)
	}
	if limit := client.GetTransport().ResponseHeaderTimeout; limit != answerLimit {
		t.Errorf("storage may be silent for %v, want %v", limit, answerLimit)
	}
}
