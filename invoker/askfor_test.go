// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

type wish struct {
	Sure   bool     `json:"sure" description:"really"`
	Name   string   `json:"name,omitempty" maxLength:"5" title:"Your name"`
	Mail   *string  `json:"mail,omitempty" format:"email"`
	Kind   *string  `json:"kind,omitempty" enum:"a,b"`
	Count  int      `json:"count,omitempty" minimum:"1" default:"2"`
	Extras []string `json:"extras,omitempty" enum:"milk,lemon"`
}

// asked runs AskFor in a call whose person gives the answer.
func asked[T any](result *invoker.ElicitResult, err error) (answer T, request *invoker.ElicitRequest, failure error) {
	call := &invoker.Call{Person: func(_ context.Context, r *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		request = r
		return result, err
	}}
	answer, failure = invoker.AskFor[T](invoker.WithCall(context.Background(), call), "Well?")
	return answer, request, failure
}

func accepted(content map[string]any) *invoker.ElicitResult {
	return &invoker.ElicitResult{Action: invoker.Accept, Content: content}
}

func TestAskFor(t *testing.T) {
	answer, request, err := asked[wish](accepted(map[string]any{
		"sure": true, "name": "Ada", "kind": "b", "mail": nil, "count": nil, "extras": []any{"milk"},
	}), nil)
	kind := "b"
	if want := (wish{Sure: true, Name: "Ada", Kind: &kind, Count: 2, Extras: []string{"milk"}}); err != nil || !reflect.DeepEqual(answer, want) {
		t.Errorf("got %+v, %v", answer, err)
	}
	const want = `{"type":"object","properties":{` +
		`"sure":{"type":"boolean","description":"really"},` +
		`"name":{"type":"string","title":"Your name","maxLength":5},` +
		`"mail":{"type":"string","format":"email"},` +
		`"kind":{"type":"string","enum":["a","b"]},` +
		`"count":{"type":"integer","default":2,"minimum":1},` +
		`"extras":{"type":"array","items":{"type":"string","enum":["milk","lemon"]}}},"required":["sure"]}`
	if string(request.Schema) != want || request.Message != "Well?" {
		t.Errorf("asked %s\n%s\nwant\n%s", request.Message, request.Schema, want)
	}
}

func TestAskForWithoutAnAnswer(t *testing.T) {
	for _, test := range []struct {
		name   string
		result *invoker.ElicitResult
		code   invoker.Code
		cause  error
	}{
		{"declined", &invoker.ElicitResult{Action: invoker.Decline, Content: map[string]any{"sure": true}}, invoker.Denied, invoker.ErrDeclined},
		{"dismissed", &invoker.ElicitResult{Action: invoker.Dismiss}, invoker.Denied, invoker.ErrDismissed},
		{"nothing", nil, invoker.Denied, invoker.ErrDismissed},
		{"no action", &invoker.ElicitResult{Content: map[string]any{"sure": true}}, invoker.Denied, invoker.ErrDeclined},
		{"missing", accepted(nil), invoker.Protocol, nil},
		{"too long", accepted(map[string]any{"sure": true, "name": "Augusta"}), invoker.Protocol, nil},
		{"another type", accepted(map[string]any{"sure": "yes"}), invoker.Protocol, nil},
		{"more", accepted(map[string]any{"sure": true, "more": 1}), invoker.Protocol, nil},
		{"no JSON", accepted(map[string]any{"sure": make(chan int)}), invoker.Protocol, nil},
		{"a bad address", accepted(map[string]any{"sure": true, "mail": "Augusta"}), invoker.Protocol, nil},
	} {
		answer, _, err := asked[wish](test.result, nil)
		failure := invoker.AsFailure(err)
		if failure == nil || failure.Code != test.code || test.cause != nil && !errors.Is(err, test.cause) || !reflect.DeepEqual(answer, wish{}) {
			t.Errorf("%s: got %+v, %v", test.name, answer, err)
			continue
		}
		if failure.Cause == nil || strings.Contains(failure.Message, "Augusta") {
			t.Errorf("%s: got %v, cause %v", test.name, failure, failure.Cause)
		}
	}
	gone := errors.New("gone")
	if _, _, err := asked[wish](nil, gone); err != gone {
		t.Errorf("got %v", err)
	}
	for _, ctx := range []context.Context{context.Background(), invoker.WithCall(context.Background(), &invoker.Call{})} {
		if _, err := invoker.AskFor[wish](ctx, "?"); invoker.AsFailure(err).Code != invoker.Unavailable {
			t.Errorf("got %v", err)
		}
		if _, err := invoker.SampleText(ctx, "", "?"); invoker.AsFailure(err).Code != invoker.Unavailable {
			t.Errorf("got %v", err)
		}
		invoker.Notef(ctx, "info", "nobody hears this")
	}
}

func TestFormsAreFlat(t *testing.T) {
	check := func(_ any, request *invoker.ElicitRequest, err error, want string) {
		t.Helper()
		if err == nil || request != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	type nested struct{ A struct{ B int } }
	a, r, err := asked[nested](nil, nil)
	check(a, r, err, "the property A is not a string, a number, a boolean or a list of choices")
	b, r, err := asked[struct{ A []string }](nil, nil)
	check(b, r, err, "is a list; a form supports only lists of strings with an enum")
	c, r, err := asked[struct {
		A int `enum:"1,2"`
	}](nil, nil)
	check(c, r, err, "has an enum of numbers")
	d, r, err := asked[struct {
		A string `format:"uuid"`
	}](nil, nil)
	check(d, r, err, "has the format uuid")
	e, r, err := asked[struct{ A any }](nil, nil)
	check(e, r, err, "is not a string")
	f, r, err := asked[map[string]string](nil, nil)
	check(f, r, err, "it is not a struct")
	g, r, err := asked[struct {
		A int `minimum:"x"`
	}](nil, nil)
	check(g, r, err, `minimum:"x"`)
}

func TestAskHoldsTheClock(t *testing.T) {
	var events []string
	call := &invoker.Call{
		Pause: func() func() {
			events = append(events, "pause")
			return func() { events = append(events, "resume") }
		},
		Person: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			events = append(events, "ask")
			return accepted(map[string]any{"sure": true}), nil
		},
		Model: func(_ context.Context, r *invoker.SampleRequest) (*invoker.SampleResult, error) {
			events = append(events, "sample "+r.System+" "+r.Messages[0].Role+" "+canister.TextOf(r.Messages[0].Content))
			return &invoker.SampleResult{Text: "42"}, nil
		},
		Log: func(entry invoker.LogEntry) { events = append(events, entry.Level+" "+string(entry.Data)) },
	}
	ctx := invoker.WithCall(context.Background(), call)
	if _, err := invoker.AskFor[wish](ctx, "?"); err != nil {
		t.Error(err)
	}
	if text, err := invoker.SampleText(ctx, "Be brief.", "6 by 7?"); err != nil || text != "42" {
		t.Errorf("got %s, %v", text, err)
	}
	invoker.Notef(ctx, "warning", "%d \"left\"", 3)
	want := []string{"pause", "ask", "resume", "pause", "sample Be brief. user 6 by 7?", "resume", `warning "3 \"left\""`}
	if !reflect.DeepEqual(events, want) {
		t.Errorf("got %q", events)
	}
	var data string
	if err := json.Unmarshal([]byte(strings.TrimPrefix(events[6], "warning ")), &data); err != nil || data != `3 "left"` {
		t.Errorf("got %s, %v", data, err)
	}
}
