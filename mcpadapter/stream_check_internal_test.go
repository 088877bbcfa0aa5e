// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"io"
	"strings"
	"testing"
)

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
