// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/invoker"
	. "github.com/consort-go/consort/mcpadapter/grpctool/grpctooltest"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc/codes"
)

// A call of a tool that changes nothing is repeated once, and not again if that does not
// help.
func TestFaultsOfReading(t *testing.T) {
	for _, rule := range []Rule{
		{Fault: "cut", At: "before-effect"},
		{Fault: "cut", At: "after-effect"},
		{Fault: "half", At: "after-effect"},
		{Fault: "bad-gateway", At: "after-effect"},
		{Fault: "status", At: "before-effect", Code: codes.Unavailable},
		{Fault: "reset", At: "after-effect"},
	} {
		t.Run(fmt.Sprintf("%s/%s", rule.Fault, rule.At), func(t *testing.T) {
			s := newStage(t, faultBound)
			look := s.tool("faulty__look")
			if err := s.fake.Script(rule); err != nil {
				t.Fatal(err)
			}
			if code, failure := s.call(look); code != "" {
				t.Errorf("the call came to %v", failure)
			}
			if calls := len(s.look.Calls()); calls != 2 {
				t.Errorf("it arrived %d times", calls)
			}
			if err := s.fake.Script(Rule{Fault: rule.Fault, At: rule.At, Code: rule.Code, Times: Always}); err != nil {
				t.Fatal(err)
			}
			if code, _ := s.call(s.tool("faulty__look")); code == "" || len(s.look.Calls()) > 4 {
				t.Errorf("where it cannot help it came to %q, and arrived %d times in all", code, len(s.look.Calls()))
			}
			if err := s.fake.Script(); err != nil {
				t.Fatal(err)
			}
			s.recovers()
		})
	}
}

// Tools that cannot be used are set aside and say why; all others are there, up
// to the ensemble's own bound.
func TestFaultsOfListing(t *testing.T) {
	t.Run("many", func(t *testing.T) {
		s := newStage(t, faultBound)
		if err := s.fake.Script(Rule{Fault: "many-tools", At: "list", Times: Always}); err != nil {
			t.Fatal(err)
		}
		s.tool("faulty__many0")
		catalog, err := s.roster.Catalog(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if tools, aside := len(catalog.Tools()), len(catalog.Aside()); tools != 1001 || tools+aside != 10_003 {
			t.Errorf("%d tools are offered and %d set aside", tools, aside)
		}
		s.othersServe()
	})
	t.Run("odd", func(t *testing.T) {
		s := newStage(t, faultBound)
		if err := s.fake.Script(Rule{Fault: "odd-tools", At: "list", Times: Always}); err != nil {
			t.Fatal(err)
		}
		s.tool("faulty__pay")
		catalog, err := s.roster.Catalog(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		var aside, offered []string
		for _, a := range catalog.Aside() {
			aside = append(aside, a.Tool)
			if a.Reason == "" {
				t.Errorf("%.100q is set aside without a reason", a.Tool)
			}
		}
		for _, tool := range catalog.Tools() {
			if tool.Ensemble().Name() == "faulty" {
				offered = append(offered, tool.Definition().Name)
			}
			if len(tool.Name()) > 64 {
				t.Errorf("a model is offered a name of %d letters", len(tool.Name()))
			}
		}
		slices.Sort(offered)
		if want := []string{"", "", "no-json", "no-schema", "twice"}; !slices.Equal(aside, want) {
			t.Errorf("set aside are %.200q, want %q", aside, want)
		}
		if want := []string{"look", strings.Repeat("n", 10_000), "odd-output", "pay", "twice"}; !slices.Equal(offered, want) {
			t.Errorf("on offer are %.200q", offered)
		}
		s.recovers()
	})
}

// What a server says is taken as far as it can be understood.
func TestFaultsOfAnswers(t *testing.T) {
	s := newStage(t, faultBound)
	long := strings.Repeat("m", 100_000)
	for name, response := range map[string]*toolspb.ToolCallResponse{
		"no_json":       {Success: true, ResultJson: `{"paid": `},
		"nothing":       {Success: true},
		"empty":         {},
		"unknown_code":  {ErrorCode: 99, ErrorMessage: "The tills are closed."},
		"long_words":    {ErrorCode: toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR, ErrorMessage: long},
		"both":          {Success: true, ResultJson: `"paid"`, ErrorCode: toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR, ErrorMessage: "or not"},
		"broken_extras": {Success: true, ResultJson: `"paid"`, ContentJson: `[{"type":`, FailureJson: `{`},
		"broken_cause":  {ErrorCode: toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS, ErrorMessage: "no amount", FailureJson: `{"code":7}`},
	} {
		s.fake.Answers(name, response)
	}
	for name, want := range map[string]struct {
		code invoker.Code
		text string
	}{
		"no_json":       {"", `{"paid": `},
		"nothing":       {"", ""},
		"empty":         {invoker.ExecutionFailed, "The tool failed without saying why."},
		"unknown_code":  {invoker.ExecutionFailed, "The tills are closed."},
		"long_words":    {invoker.ExecutionFailed, long},
		"both":          {"", "paid"},
		"broken_extras": {"", "paid"},
		"broken_cause":  {invoker.InvalidArguments, "no amount"},
	} {
		output, err := s.tool("faulty__"+name).Invoke(s.ctx, &invoker.Call{})
		var code invoker.Code
		content := output.Content
		if failure := invoker.AsFailure(err); failure != nil {
			code, content = failure.Code, failure.Content
		}
		if text := canister.TextOf(content); code != want.code || text != want.text {
			t.Errorf("%s came to %q, %.100q", name, code, text)
		}
	}
}

// A fault of one call affects the concurrent calls on the connection, or does not; each
// runs once.
func TestFaultsBesideEachOther(t *testing.T) {
	const calls = 20
	for fault, want := range map[Fault]invoker.Code{"cut": invoker.OutcomeUnknown, "goaway": "", "half": invoker.OutcomeUnknown} {
		t.Run(string(fault), func(t *testing.T) {
			s := newStage(t, faultBound)
			var together sync.WaitGroup
			together.Add(calls)
			all := s.fake.Does("all", func(context.Context, Call) (any, error) {
				together.Done()
				together.Wait()
				return "done", nil
			})
			tool := s.tool("faulty__all")
			if err := s.fake.Script(Rule{Fault: fault, At: "after-effect"}); err != nil {
				t.Fatal(err)
			}
			failed := make(chan invoker.Code, calls)
			for range calls {
				go func() {
					code, _ := s.call(tool)
					failed <- code
				}()
			}
			struck := 0
			for range calls {
				switch code := await(t, "a call", failed); code {
				case "":
				case want:
					struck++
				default:
					t.Errorf("a call came to %q", code)
				}
			}
			if want != "" && struck == 0 || all.Ran() != calls || len(all.Calls()) != calls {
				t.Errorf("%d calls were struck; %d arrived, and %d ran", struck, len(all.Calls()), all.Ran())
			}
			s.recovers()
		})
	}
}

// A conversation continues despite faults of a server: each invocation has one result,
// the result of a call that may have taken effect says so, and other servers keep
// working.
func TestFaultsInAConversation(t *testing.T) {
	s := newStage(t, faultBound)
	if err := s.fake.Script(Rule{Fault: "die", At: "after-effect", Tool: "pay"}); err != nil {
		t.Fatal(err)
	}
	model := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{{Name: "other__fine", Arguments: `{}`}, {Name: "faulty__pay", Arguments: `{}`}}},
		conversetest.Line{Expect: lastResults("", "OUTCOME_UNKNOWN"), Text: "I do not know whether it was paid."},
	)
	talk := converse.New(model, s.roster, nil)
	turn, err := talk.Ask(s.ctx, canister.Text("Pay."))
	if err != nil || turn.Text() != "I do not know whether it was paid." || model.Err() != nil {
		t.Errorf("the turn came to %q, %v; the model: %v", turn.Text(), err, model.Err())
	}
	if s.pay.Ran() != 1 || s.fine.Ran() != 1 {
		t.Errorf("it paid %d times, and the other tool ran %d times", s.pay.Ran(), s.fine.Ran())
	}
	s.recovers()
}

// lastResults looks whether a history ends with results of these codes.
func lastResults(codes ...string) func(*converse.Request) error {
	return func(request *converse.Request) error {
		var got []string
		for _, c := range request.History {
			if result, ok := c.(canister.Result); ok {
				got = append(got, result.Code)
			}
		}
		if !slices.Equal(got, codes) {
			return errors.New("the results are " + strings.Join(got, ", "))
		}
		return nil
	}
}
