// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"io"
	"strings"
	"testing"
	"time"
)

// A server cannot make this process open streams without a pause.
func TestShortRetry(t *testing.T) {
	opened, wait := 0, firstRetry
	for past := time.Duration(0); past < 10*time.Second; past += wait {
		wait = nextWait(wait, time.Millisecond, 0)
		opened++
	}
	if opened >= 100 {
		t.Errorf("the stream is opened %d times in 10 s", opened)
	}
	if got := nextWait(firstRetry, 3*time.Second, 0); got != 3*time.Second {
		t.Errorf("the pause that the server asks for is %s", got)
	}
	tripper := &roundTripper{limit: 1 << 10}
	passed, err := io.ReadAll(tripper.checkStream(t.Context(), io.NopCloser(strings.NewReader("id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n"))))
	if err != nil || !strings.Contains(string(passed), "retry: 200\n") {
		t.Errorf("the SDK gets %q, %v", passed, err)
	}
}

// On the stream of HTTP with SSE, the SDK sees the endpoint first, and then messages alone.
func TestEventsBeforeTheEndpoint(t *testing.T) {
	const endpoint, message = "event: endpoint\ndata: /messages\n\n", "data: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n"
	stream := "event: hello\ndata: x\n\n" + "retry: 5\n\n" + endpoint + endpoint + "event: ping\ndata: 1\n\n" + message
	tripper := &roundTripper{limit: 1 << 10, apart: true}
	passed, err := io.ReadAll(tripper.checkStream(t.Context(), io.NopCloser(strings.NewReader(stream))))
	if got := string(passed); err != nil || got != endpoint+message {
		t.Errorf("the SDK gets %q, %v", got, err)
	}
}
