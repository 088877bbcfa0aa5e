// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/invoker/telemetry"
)

// turn runs a conversation of one turn with three servers and returns the spans
// of all four processes, or what stands for them.
func turn(t *testing.T, place, answer string, told ...string) []span {
	t.Helper()
	calls := []string{"sky__weather", `{"place":"Oslo"}`, "sea__tides", `{"place":"` + place + `"}`, "land__traffic", `{"place":"Oslo"}`}
	model, err := openaimodel.New("gpt-5-mini", &openaimodel.Options{BaseURL: startModel(t, asks(calls...), says(answer, told...)), APIKey: "sk-test"})
	if err != nil {
		t.Fatal(err)
	}
	s := startServers(t)
	own := mustRecord(t, "client", telemetry.Options{})
	talk := converse.New(model, s.roster, &converse.Options{ID: "talk-1", Telemetry: own.Telemetry})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for event, err := range talk.Send(ctx, canister.Text("How is it out there?")) {
		if err != nil {
			t.Fatal(err)
		}
		if done, ok := event.(converse.TurnCompleted); ok && done.Turn.Text() != answer {
			t.Errorf("the answer is %q", done.Turn.Text())
		}
	}
	s.closeRoster() // the child writes its spans when it leaves
	return append(append(append(own.spans(), s.http.spans()...), s.grpc.spans()...), read(t, s.file)...)
}

func TestSpanTree(t *testing.T) {
	all := turn(t, "Bergen", "Fair.", "weather of Oslo: fair", "tides of Bergen: fair", "traffic of Oslo: fair")
	t.Log("\n" + tree(all))
	for _, s := range all {
		t.Log(s.Name, s.Process, s.Attributes)
	}
}
