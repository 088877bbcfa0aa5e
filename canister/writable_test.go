// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
)

// Writable says what Marshal says.
func TestWritable(t *testing.T) {
	extras := []canister.Extra{
		{}, {Metadata: canister.Fields{"a": json.RawMessage("1")}}, {Metadata: canister.Fields{"a": json.RawMessage("{no")}},
		{Unknown: canister.Fields{"text": json.RawMessage("1")}}, {Unknown: canister.Fields{"\xff": json.RawMessage("1")}},
		{Metadata: canister.Fields{"a": json.RawMessage(strings.Repeat("[", 9500) + strings.Repeat("]", 9500))}},
	}
	var contents []canister.Content
	for _, extra := range extras {
		contents = append(contents, canister.TextContent{Text: "\xff", Extra: extra}, canister.ImageContent{Data: []byte("x"), Extra: extra},
			canister.AudioContent{Extra: extra}, canister.ResourceContent{Blob: []byte("x"), Extra: extra},
			canister.LinkContent{URI: "x", Extra: extra}, canister.StructuredContent{JSON: json.RawMessage("[]"), Extra: extra})
	}
	contents = append(contents, nil, &canister.TextContent{}, canister.StructuredContent{JSON: json.RawMessage("no")}, canister.StructuredContent{})
	canisters := []canister.Canister{
		nil, &canister.User{}, canister.User{Head: canister.Head{Time: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}}, canister.Intent{},
		canister.Intent{Approved: time.Unix(1, 0)}, canister.Intent{Approved: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)},
		canister.Intent{Head: canister.Head{Time: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}}, canister.Intent{Head: canister.Head{Extra: extras[4]}},
	}
	for _, content := range contents {
		canisters = append(canisters, canister.User{Content: []canister.Content{content}},
			canister.Result{Content: []canister.Content{canister.Text("x"), content}})
	}
	for _, c := range canisters {
		_, err := canister.Marshal(c)
		if got := canister.Writable(c); (got == nil) != (err == nil) || err != nil && got.Error() != err.Error() {
			t.Errorf("of %#v: %v, and Marshal says %v", c, got, err)
		}
		err = canister.Encode(new(bytes.Buffer), c)
		if got := canister.Encode(io.Discard, c); (got == nil) != (err == nil) || err != nil && got.Error() != err.Error() {
			t.Errorf("of %#v: to io.Discard %v, and to a buffer %v", c, got, err)
		}
	}
}

func TestFailed(t *testing.T) {
	if (canister.Result{}).Failed() || !(canister.Result{Code: "TIMEOUT"}).Failed() {
		t.Error("a result has failed if it has a code")
	}
}
