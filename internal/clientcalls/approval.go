// SPDX-License-Identifier: Apache-2.0

package clientcalls

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/invoker"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// maxArguments bounds the arguments that a person is asked about, in bytes.
const maxArguments = 256 << 10

// approval is a call that needs an approval.
type approval struct {
	gate   *Gate
	rules  *Rules
	demand Demand
	call   *mcpserver.ToolCall
	tool   *ensemble.Tool // as it is listed now
	ask    converse.Approval
	client string // the name of the client; may be empty
	made   *bool  // set when the call is made

	store  history.Store
	lasts  bool   // the store outlives the call
	id     string // of the conversation
	owner  string
	bound  string // stands for the client, the server and the tool
	sealed string // stands for the definition of the tool
}

// newApproval returns the approval of a call, or why the call cannot be made.
func (g *Gate) newApproval(ctx context.Context, rules *Rules, demand Demand, call *mcpserver.ToolCall) (*approval, error) {
	address, ok := "own", true
	if call.Item.Ensemble != "" {
		address, ok = rules.Address(call.Tool.Ensemble())
	}
	if !ok {
		return nil, invoker.UnavailableFor(time.Second, "The server of this tool is being replaced.")
	}
	arguments, err := canonical(call.Call.Arguments)
	if err != nil {
		return nil, err
	}
	tool, err := listed(ctx, call.Tool)
	if err != nil {
		return nil, err
	}
	store, err := rules.Store(ctx)
	if err != nil {
		return nil, unreadable(err)
	}
	def := tool.Definition()
	a := &approval{
		gate: g, rules: rules, demand: demand, call: call, tool: tool, client: access.NameFrom(ctx),
		ask: converse.Approval{
			Ensemble: call.Item.Ensemble, Tool: def.Name, Definition: def, ReadOnly: call.Item.Hints.ReadOnly, Arguments: arguments,
		},
		store: store, lasts: store != nil, sealed: pins.Fingerprint(def),
	}
	if !a.lasts {
		a.store = history.NewMemory()
	}
	identity := access.IdentityFrom(ctx)
	a.owner = ownerOf(identity)
	a.bound = digest(identity, a.client, call.Item.Ensemble, address, def.Name)
	sum := sha256.Sum256([]byte(digest(a.bound, a.sealed, string(arguments))))
	a.id = "ask-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
	return a, nil
}

// digest returns a hash of texts; different lists have different hashes.
func digest(texts ...string) string {
	whole, _ := json.Marshal(texts) // texts always have a JSON form
	sum := sha256.Sum256(whole)
	return hex.EncodeToString(sum[:])
}

// canonical returns arguments in the form in which a person sees them and the tool gets
// them: members are sorted, and of several members with the same name only the last stays.
func canonical(arguments json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(arguments)) == 0 {
		return json.RawMessage("{}"), nil
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil || object == nil || !json.Valid(arguments) {
		return nil, invoker.Failf(invoker.InvalidArguments, "The arguments must be one JSON object.")
	}
	text, err := jsontext.Encode(object)
	if err != nil {
		return nil, invoker.Failf(invoker.InvalidArguments, "The arguments must be one JSON object.")
	}
	if size := len(text) + 1; size > maxArguments { // with a newline
		return nil, invoker.Failf(invoker.Denied, "This call needs an approval, and its arguments are too long to be read by a person: %d bytes of at most %d.", size, maxArguments)
	}
	return text, nil
}

// listed returns a tool as its server lists it now. Its calls reach this server only.
func listed(ctx context.Context, tool *ensemble.Tool) (*ensemble.Tool, error) {
	tools, err := tool.Ensemble().Tools(ctx)
	switch {
	case errors.Is(err, ensemble.ErrNeedsLogin):
		return nil, invoker.Failf(invoker.Unauthorized, "The tool's server needs a login of the user, so the call was not made: %w", err)
	case err != nil:
		return nil, &invoker.Failure{Code: invoker.Unavailable, Message: "The tool cannot be reached, so the call was not made.", Cause: err, Retryable: true}
	}
	for _, t := range tools {
		if t.Definition().Name == tool.Definition().Name {
			return t.Bound(), nil
		}
	}
	return nil, invoker.Failf(invoker.ToolNotFound, "%q no longer offers the tool %q.", tool.Ensemble().Name(), tool.Definition().Name)
}

// run waits for nothing but the user of the client: it makes the call if it is approved.
func (a *approval) run(ctx context.Context) (invoker.Output, error) {
	for {
		s, err := readState(ctx, a.store, a.id)
		if err != nil {
			return invoker.Output{}, unreadable(err)
		}
		output, over, err := a.step(ctx, s)
		switch conflict := (*history.ConflictError)(nil); {
		case errors.As(err, &conflict), errors.Is(err, waits.ErrNotOpen): // another process was faster
		case over || err != nil:
			return output, err
		}
	}
}

// step takes the next step from a state. over says that the call has its result.
func (a *approval) step(ctx context.Context, s *state) (output invoker.Output, over bool, err error) {
	now := time.Now()
	switch {
	case s.invocation.ID == "" || s.over:
		return output, false, a.propose(ctx, s, nil)
	case !s.isOf(a):
		return output, true, invoker.Failf(invoker.Denied, "The approval %s belongs to another call.", a.id)
	case s.intent.ID != "":
		return output, true, a.begun(ctx, s)
	case s.answer.ID == "" && now.Before(s.wait.Deadline):
		answered, err := a.await(ctx, s)
		return output, !answered, err
	case s.answer.ID == "", s.answer.Verdict != canister.VerdictDeny && now.After(s.expiry()):
		return output, false, a.propose(ctx, s, a.ended(s, invoker.Denied, "There was no answer in time, or the call was not made in time."))
	case s.answer.Verdict == canister.VerdictDeny:
		return output, true, a.deny(ctx, s)
	}
	output, err = a.make(ctx, s)
	return output, true, err
}

// deny uses an answer that denies the call up.
func (a *approval) deny(ctx context.Context, s *state) error {
	reason := cmp.Or(strings.TrimSpace(s.answer.Reason), "no reason was given")
	a.call.Record.By = s.answer.By
	if err := a.append(ctx, s, a.ended(s, invoker.Denied, "The call was denied.")...); err != nil {
		return err
	}
	return invoker.Failf(invoker.Denied, "The call was denied and not started: %s.", strings.TrimRight(reason, "."))
}

// begun returns the failure for a call whose intent has no outcome.
func (a *approval) begun(ctx context.Context, s *state) error {
	if a.gate.isRunning(s.intent.ID) {
		return invoker.Failf(invoker.Conflict, "An equal call with the approval %s is under way. This one was not started.", a.id)
	}
	if known := s.intent.Time.Add(a.rules.Others); time.Now().Before(known) {
		return invoker.Failf(invoker.Conflict, "An equal call with the approval %s was started and may be under way in another process. This one was not started. If no outcome is stored by %s, it is lost.", a.id, known.UTC().Format(time.RFC3339))
	}
	a.call.Record.By = s.answer.By
	if err := a.append(ctx, s, a.ended(s, invoker.OutcomeUnknown, "The outcome of the call was lost.")...); err != nil {
		return err
	}
	return invoker.Failf(invoker.OutcomeUnknown, "The approved call was started at %s, and its outcome was lost. It may or may not have taken effect: find out before you call it again. To make it again, it needs another approval.",
		s.intent.Time.UTC().Format(time.RFC3339))
}

// unreadable returns the failure for a store that does not work.
func unreadable(err error) error {
	if failure := (*invoker.Failure)(nil); errors.As(err, &failure) {
		return failure
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return invoker.AsFailure(err)
	}
	return &invoker.Failure{Code: invoker.Unavailable, Message: "The approval of this call cannot be read or stored now. The call was not started.", Cause: err, Retryable: true}
}
