// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
)

// The model is told that an interrupted call has changed nothing only if the ensemble
// believes its tool.
func TestInterruptedCallOfATrustedTool(t *testing.T) {
	for trust, want := range map[ensemble.Trust]string{
		ensemble.TrustNone: "may or may not have taken effect", ensemble.TrustReads: "changes nothing", ensemble.TrustAll: "changes nothing",
	} {
		roster, err := ensemble.NewRoster(ensemble.New("local", ensemble.LocalSource(readOnly(waiter("slow"))), &ensemble.Options{Trust: trust}))
		if err != nil {
			t.Fatal(err)
		}
		talk := process(t, nil, roster, converse.Options{OwnRoster: true}, asks(call("slow", `{}`)), done)
		for event := range talk.Send(t.Context(), canister.Text("Go.")) {
			if _, ok := event.(converse.InvocationStarted); ok {
				break
			}
		}
		if got := canister.TextOf(results(talk.History())[0].Content); !strings.Contains(got, want) {
			t.Errorf("with the trust %s the result is %q, want %q", trust, got, want)
		}
		if err := talk.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
