// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// TestDecisionsThatArePutOff: where conversations are kept, and only there.
func TestDecisionsThatArePutOff(t *testing.T) {
	nobody := converse.Deny("This call needs approval, but no person can be asked here.")
	later := func(context.Context, converse.Approval) (converse.Decision, error) {
		return converse.Decision{}, config.ErrLater
	}
	yes := func(context.Context, converse.Approval) (converse.Decision, error) { return converse.Allow(), nil }
	broken := func(context.Context, converse.Approval) (converse.Decision, error) {
		return converse.Decision{}, errors.New("no")
	}
	asks := config.Rule{Action: config.ActionAsk}
	absent := func(context.Context, converse.Approval) (converse.Decision, error) {
		return converse.Decision{}, fmt.Errorf("asked: %w", &config.UnansweredError{Reason: "It is late."})
	}
	defers := config.Rule{Action: config.ActionDefer, Within: time.Hour}
	forAnn := config.Rule{Action: config.ActionDefer, Within: time.Hour, Who: "ann"}
	for name, test := range map[string]struct {
		rule  config.Rule
		ask   converse.ApproveFunc
		lasts bool
		want  converse.Decision
	}{
		"ask, nobody there":            {asks, nil, true, nobody},
		"ask, with a reason":           {asks, absent, true, converse.Deny("It is late.")},
		"ask, put off":                 {asks, later, true, converse.Defer(0, "")},
		"ask, put off, nothing kept":   {asks, later, false, nobody},
		"defer, nobody there":          {defers, nil, true, converse.Defer(time.Hour, "")},
		"defer, with a reason":         {defers, absent, true, converse.Defer(time.Hour, "")},
		"defer, nothing kept":          {defers, nil, false, nobody},
		"defer, somebody there":        {defers, yes, true, converse.Allow()},
		"defer, put off":               {defers, later, true, converse.Defer(time.Hour, "")},
		"defer, put off, nothing kept": {defers, later, false, nobody},
		"for ann, somebody there":      {forAnn, yes, true, converse.Defer(time.Hour, "ann")},
		"for ann, nothing kept":        {forAnn, yes, false, nobody},
	} {
		for i, approval := range []config.Approval{{Rules: []config.Rule{test.rule}}, {Default: test.rule.Action}} {
			if i == 1 && test.rule.Who != "" {
				continue // the default names nobody
			}
			if i == 1 && reflect.DeepEqual(test.want, converse.Defer(time.Hour, "")) {
				test.want = converse.Defer(0, "")
			}
			decide, err := approval.Func(test.ask, test.lasts)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := decide(t.Context(), converse.Approval{}); err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	decide, err := (&config.Approval{Default: config.ActionDefer}).Func(broken, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decide(t.Context(), converse.Approval{}); err == nil {
		t.Error("an error is no decision")
	}
}

// talking is a configuration with a model and further tables.
func talking(t *testing.T, tables string) *config.Assembly {
	t.Helper()
	c, err := config.Parse(filepath.Join(t.TempDir(), "consort.toml"), []byte("[model]\nname = \"m\"\nbase_url = \"http://127.0.0.1:1\"\n"+tables), nil)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parts.Close(context.Background()) })
	return parts
}

func TestOptionsOfConversationsThatLast(t *testing.T) {
	o := talking(t, "[history]\npath = \"h.db\"\ndoubt = \"ask\"\n[approval]\nwithin = \"2h\"\n[conversation]\nidentity = [\"user\"]\n").Options
	if !o.AskDoubt || o.WaitFor != 2*time.Hour || len(o.Identity) != 1 {
		t.Errorf("%+v", o)
	}
	if o := talking(t, "").Options; o.Compaction != nil || o.Budget != nil || o.AskDoubt {
		t.Errorf("%+v", o)
	}
	for table, want := range map[string]converse.Compaction{
		"":                                     {},
		"trim = 0\n":                           {Trim: -1},
		"window = 9\nat = 0.5\nkeep = 2\n":     {Window: 9, At: 0.5, Keep: 2},
		"trim = 7\nmax_tokens = 5\n":           {Trim: 7, MaxTokens: 5},
		"instructions = \"Shortly, please\"\n": {Instructions: "Shortly, please"},
	} {
		if got := talking(t, "[compaction]\n"+table).Options.Compaction; !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v", table, got)
		}
	}
	if other := talking(t, "[compaction]\nmodel = \"small\"\n"); other.Options.Compaction.Model == nil || other.Options.Compaction.Model == other.Model {
		t.Errorf("the model of the summaries: %v", other.Options.Compaction.Model)
	}
}

// TestBudgets: what is spent under one configuration is spent under another with
// the same store, and without a store it ends with the program.
func TestBudgets(t *testing.T) {
	const caps = "[budgets]\ncurrency = \"EUR\"\ncaps = [{scope = \"roster\", window = \"month\", tokens = 1000, money = \"2.5\"}]\n" +
		"prices = {m = {input = \"1\", cached = \"0.1\", cache_written = \"1.25\", output = \"4\"}}\n"
	count := 0
	spend := func(parts *config.Assembly) (err error) {
		policy := parts.Options.Budget
		count++
		hold, err := policy.Reserve(t.Context(), budget.Need{ID: fmt.Sprint(count), Model: "m", Exchange: true, Input: 300, Answer: 300, Now: time.Now()})
		if err == nil {
			_, err = hold.Settle(t.Context(), budget.Spent{})
		}
		return err
	}
	for _, store := range []string{"sqlite", "files"} {
		kept := fmt.Sprintf("[history]\npath = %q\nstore = %q\n", filepath.Join(t.TempDir(), "h"), store)
		if err := spend(talking(t, caps+kept)); err != nil {
			t.Fatal(err)
		}
		var reached *budget.ReachedError
		hold, err := talking(t, caps+kept).Options.Budget.Reserve(t.Context(),
			budget.Need{ID: "other", Model: "m", Exchange: true, Input: 600, Answer: 300, Now: time.Now()})
		if !errors.As(err, &reached) || reached.Cap.Window != budget.Month {
			t.Errorf("%s: a second one may spend it again: %v, %v", store, hold, err)
		}
	}
	for range 2 {
		if err := spend(talking(t, caps)); err != nil {
			t.Errorf("in memory: %v", err)
		}
	}
	policy := talking(t, caps).Options.Budget
	want := budget.Price{Input: budget.Unit, Cached: budget.Unit / 10, CacheWritten: budget.Unit * 5 / 4, Output: 4 * budget.Unit}
	if policy.Prices["m"] != want || policy.Caps[0].Money != budget.Unit*5/2 || policy.Currency != "EUR" {
		t.Errorf("%+v", policy)
	}
	c := &config.Config{
		Model: &config.Model{Name: values.Plain("m"), BaseURL: values.Plain("http://x")}, Budgets: &budget.Policy{Caps: []budget.Cap{{Scope: budget.Roster}}},
	}
	if _, err := config.Assemble(c, nil); err == nil || !strings.Contains(err.Error(), "budgets: ") {
		t.Errorf("a cap of nothing: %v", err)
	}
}

// Cached input that costs nothing is not input without a price of its own.
func TestPriceOfNothing(t *testing.T) {
	price := talking(t, "[budgets]\ncurrency = \"EUR\"\ncaps = [{scope = \"roster\", money = \"2.5\"}]\n"+
		"prices = {m = {input = \"1\", output = \"4\", cached = \"0\"}}\n").Options.Budget.Prices["m"]
	if cost := price.Cost(canister.Usage{Input: 2_000_000, Cached: 2_000_000}); cost != 0 {
		t.Errorf("cached input costs %v", cost)
	}
	if cost := price.Cost(canister.Usage{Input: 2_000_000, CacheWritten: 2_000_000}); cost != 2*budget.Unit {
		t.Errorf("input that is written to the cache costs %v", cost)
	}
}

// The model of the summaries needs a price as that of the answers does.
func TestPriceOfSummaries(t *testing.T) {
	const unpriced = "[budgets]\ncurrency = \"EUR\"\ncaps = [{scope = \"roster\", money = \"2.5\"}]\nprices = {m = {input = \"1\", output = \"4\"}}\n" +
		"[model]\nname = \"m\"\nbase_url = \"http://localhost:1/v1\"\n[compaction]\nmodel = \"small\"\n"
	if _, err := config.Parse("consort.toml", []byte(unpriced), nil); err == nil ||
		!strings.Contains(err.Error(), "budgets.prices: missing: expected the price of the model of [compaction]") {
		t.Errorf("in a file: %v", err)
	}
	c := &config.Config{
		Model:      &config.Model{Name: values.Plain("m"), BaseURL: values.Plain("http://localhost:1/v1")},
		Compaction: &config.Compaction{Model: values.Plain("small")},
		Budgets:    &budget.Policy{Currency: "EUR", Caps: []budget.Cap{{Scope: budget.Roster, Money: budget.Unit}}, Prices: map[string]budget.Price{"m": {}}},
	}
	if _, err := config.Assemble(c, nil); err == nil || !strings.Contains(err.Error(), "small") {
		t.Errorf("in a program: %v", err)
	}
}

// TestWhoseConversationsAre: those who are served are found again by what stands
// for them, which tells nothing of them; of somebody else nothing is known.
func TestWhoseConversationsAre(t *testing.T) {
	parts := talking(t, `
[conversation]
identity = ["user"]
[serve]
http = "127.0.0.1:0"
clients = [
  {token = "ada-0123456789abcdef", trusted = {user = "ada", key = {value = "old", secret = true}}},
  {token = "ben-0123456789abcdef", trusted = {user = "ben"}},
]
`)
	owner := func(values ...invoker.Value) string {
		owner, err := parts.OwnerOf(invoker.WithTrusted(t.Context(), values...))
		if err != nil || !strings.HasPrefix(owner, config.OwnerPrefix) {
			t.Fatal(owner, err)
		}
		return owner
	}
	ada, renewed := owner(invoker.TrustedJSON("user", json.RawMessage(`"ada"`))),
		owner(invoker.TrustedJSON("user", json.RawMessage(`"ada"`)), invoker.TrustedJSON("key", json.RawMessage(`"new"`)))
	if ada != renewed || ada == owner(invoker.TrustedJSON("user", json.RawMessage(`"ben"`))) || ada == owner() || strings.Contains(ada, "ada") {
		t.Errorf("%s, %s", ada, renewed)
	}
	values, err := parts.ValuesOf(t.Context(), history.Info{Owner: ada}, nil)
	if err != nil || len(values) != 2 {
		t.Errorf("ada: %v, %v", values, err)
	}
	if values, err := parts.ValuesOf(t.Context(), history.Info{Owner: owner()}, nil); err != nil || len(values) != 0 {
		t.Errorf("nobody: %v, %v", values, err)
	}
	for _, stranger := range []string{"", "ann", owner(invoker.TrustedJSON("user", json.RawMessage(`"eve"`)))} {
		if values, err := parts.ValuesOf(t.Context(), history.Info{ID: "talk", Owner: stranger}, nil); err == nil || values != nil {
			t.Errorf("%q: %v", stranger, values)
		}
	}
}
