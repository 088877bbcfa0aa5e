// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// BenchmarkServe is the cost of the server alone, no sockets, for a history of
// 100 exchanges.
func BenchmarkServe(b *testing.B) {
	history := userMessage + strings.Repeat(","+asks("a")+","+answers("a"), 100)
	body := request(history, `"stream":true`)
	step := openaiserver.Step{Reply: openaiserver.Message{Calls: []openaiserver.Call{{Name: "x", Arguments: `{"a":1}`}}}}
	for _, trust := range []bool{false, true} {
		b.Run(fmt.Sprintf("trust=%v", trust), func(b *testing.B) {
			server := openaiserver.New(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{step}},
				&openaiserver.Options{Trust: trust, Record: -1})
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				w.Body = nil
				server.ServeHTTP(w, r)
				io.Copy(io.Discard, w.Result().Body)
				if w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
