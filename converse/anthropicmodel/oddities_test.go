// SPDX-License-Identifier: Apache-2.0

package anthropicmodel_test

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/internal/testing/dialects"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// TestOddities reads every stream of Messages that servers have been seen to send.
func TestOddities(t *testing.T) {
	server, _ := start(t, openaiserver.Script{}, nil)
	for _, oddity := range openaiserver.MessagesOddities() {
		t.Run(oddity.Name, func(t *testing.T) {
			url := strings.TrimSuffix(openaiserver.OddityURL(server.URL(), oddity.Name), "/v1")
			model := newModel(t, "m-1", url, anthropicmodel.Options{MaxRetries: -1})
			modeltest.Check(t, modeltest.Run(t.Context(), model, request(user("u", "Hello?"))), oddity.Want)
			if t.Failed() {
				t.Logf("%s\n%s", oddity.About, oddity.Replay.Body()[:min(2000, len(oddity.Replay.Body()))])
			}
		})
	}
}

// TestDialects has an exchange with each server, as it was recorded.
func TestDialects(t *testing.T) {
	for _, dialect := range dialects.All(t, "messages") {
		dialect.Check(t, func(t *testing.T, url string, whole bool) converse.Model {
			return newModel(t, "m-1", strings.TrimSuffix(url, "/v1"), anthropicmodel.Options{NoStream: whole, MaxRetries: -1})
		}, func() *converse.Request { return request(user("u", "Hello?")) })
	}
}
