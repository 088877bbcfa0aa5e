// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/openwaits"
	"github.com/consort-go/consort/converse/httpapi/internal/repeats"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/converse/internal/logtail"
	"github.com/consort-go/consort/converse/internal/programerror"
	"github.com/consort-go/consort/converse/internal/titles"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/turncancel"
	"github.com/consort-go/consort/invoker"
)

// info is the JSON form of [history.Info], without the owner, who is the caller.
type info struct {
	ID             string        `json:"id"`
	Title          string        `json:"title,omitzero"`
	Tags           []string      `json:"tags,omitempty"`
	Created        time.Time     `json:"created"`
	Changed        time.Time     `json:"changed"`
	Length         int           `json:"length"`
	Last           canister.Kind `json:"last,omitzero"`
	Parent         string        `json:"parent,omitzero"`
	ParentPosition int           `json:"parent_position,omitzero"`
	// The rest is only in the answer about one conversation.
	State string           `json:"state,omitzero"`
	Waits []openwaits.Wait `json:"waits,omitempty"`
}

func infoOf(i history.Info) info {
	return info{
		ID: i.ID, Title: i.Title, Tags: i.Tags, Created: i.Created.UTC(), Changed: i.Changed.UTC(), Length: i.Length, Last: i.Last,
		Parent: i.Parent, ParentPosition: i.ParentLength,
	}
}

// The states of a conversation.
const (
	stateDone    = "done"    // the last turn is over
	stateWaiting = "waiting" // it waits for answers
	stateOpen    = "open"    // a turn is under way
	stateFailed  = "failed"  // the last turn has failed, and is not retried before the next message
)

// message is the JSON form of a message of the user.
type message struct {
	Message string          `json:"message"`
	Content json.RawMessage `json:"content"`
	ID      string          `json:"id"`
}

// maxMessageID bounds the ID that a client gives to a message, in bytes.
const maxMessageID = 128

// canister returns the message. key is the value of the header Idempotency-Key: the same
// key of an owner has the same ID for the same purpose.
func (m *message) canister(purpose, owner, key string) (canister.User, error) {
	content := canister.Texts(m.Message)
	switch {
	case (m.Message == "") == (len(m.Content) == 0):
		return canister.User{}, invalid("message", "Exactly one of message and content is required.", "Send the text as message, or a list of contents as content.")
	case len(m.ID) > maxMessageID:
		return canister.User{}, invalid("id", "It has more than "+strconv.Itoa(maxMessageID)+" bytes.", "Use a shorter one, or none.")
	case m.Message == "":
		read, err := contents(m.Content)
		if err != nil {
			return canister.User{}, invalid("content", "It is not a list of contents: "+err.Error()+".", "See docs/canisters.md for the forms of contents.")
		}
		content = read
	}
	user := canister.User{Head: canister.Head{ID: m.ID}, Content: content}
	if user.ID == "" && key != "" {
		user.ID = derived(purpose, owner, key)
	}
	if user.ID == "" { // the engine need not look for it in the whole log
		user.ID, user.Time = newID(), time.Now()
	}
	return user, nil
}

// contents reads a list of contents in the form that they have in a canister.
func contents(list json.RawMessage) ([]canister.Content, error) {
	line, err := jsontext.Encode(map[string]any{"kind": canister.KindUser, "content": list})
	if err != nil {
		return nil, err
	}
	read, err := canister.Unmarshal(line)
	if err != nil {
		return nil, err
	}
	all := canister.ContentOf(read)
	if len(all) == 0 {
		return nil, errors.New("it is empty")
	}
	return all, nil
}

// derived returns an ID that depends on the parts alone.
func derived(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return idOf(sum[:])
}

func idOf(sum []byte) string { return strings.ToLower(base32.StdEncoding.EncodeToString(sum))[:26] }

// newID returns an ID that cannot be guessed.
func newID() string { return rand.Text() }

// maxKey bounds the header Idempotency-Key, in bytes.
const maxKey = 256

func keyOf(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		return "", invalid("Idempotency-Key", "It has more than "+strconv.Itoa(maxKey)+" bytes.", "Use a shorter one.")
	}
	return key, nil
}

// create begins a conversation with a message.
func (h *handler) create(w http.ResponseWriter, r *http.Request) error {
	var form struct {
		Message string          `json:"message"`
		Content json.RawMessage `json:"content"`
		ID      string          `json:"id"`
		Title   string          `json:"title"`
		Tags    []string        `json:"tags"`
	}
	owner, err := h.owner(r.Context())
	if err == nil {
		err = decode(w, r, &form)
	}
	if err != nil {
		return err
	}
	key, err := keyOf(r)
	if err != nil {
		return err
	}
	user, err := (&message{form.Message, form.Content, form.ID}).canister("message", owner, key)
	if err != nil {
		return err
	}
	b := newConversation{id: newID(), owner: owner, title: cmp.Or(titles.Line(form.Title), titles.Of(user)), tags: form.Tags, message: user}
	if key != "" {
		b.id, b.isKeyed = derived("conversation", owner, key), true
	}
	if err := checkDescription(history.Change{Title: &form.Title, Tags: &b.tags, Owner: &owner}); err != nil {
		return err
	}
	if err := h.admitNew(r.Context(), b); err != nil {
		return err
	}
	created, err := h.store.Info(r.Context(), b.id)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/conversations/"+b.id)
	writeJSON(w, http.StatusCreated, struct {
		info
		Message string `json:"message"`
	}{infoOf(created), user.ID})
	return nil
}

// The bounds of the description that a client gives to a conversation. A list repeats it for each.
const (
	maxOwnTitle = 256 // characters
	maxTags     = 32
	maxTag      = 256 // bytes
)

// checkDescription refuses a title and tags that are too long, or that no store takes.
func checkDescription(c history.Change) error {
	switch {
	case utf8.RuneCountInString(*c.Title) > maxOwnTitle:
		return invalid("title", "It has more than "+strconv.Itoa(maxOwnTitle)+" characters.", "Use a shorter one, or none.")
	case len(*c.Tags) > maxTags:
		return invalid("tags", "There are more than "+strconv.Itoa(maxTags)+".", "Use fewer.")
	case slices.ContainsFunc(*c.Tags, func(tag string) bool { return len(tag) > maxTag }):
		return invalid("tags", "One has more than "+strconv.Itoa(maxTag)+" bytes.", "Use a shorter one.")
	}
	if _, err := c.Apply(history.Info{}); err != nil {
		return invalid("title", "The title and the tags must be UTF-8 without NUL.", "Use other texts.")
	}
	return nil
}

// newConversation is a conversation that begins.
type newConversation struct {
	id, owner, title string
	tags             []string
	earlier          []canister.Canister // earlier messages, of another server
	message          canister.User
	isKeyed          bool // the request may be a repeated one
}

// admitNew begins a conversation if Options.Admit lets its first message enter.
func (h *handler) admitNew(ctx context.Context, b newConversation) error {
	return h.Admit(ctx, Entry{Canister: b.message, Earlier: b.earlier}, func(ctx context.Context) error { return h.begin(ctx, b) })
}

// begin creates a conversation, and sets its owner before it notifies the engine. If the
// request is repeated, the description is set again and the engine is notified again, but the
// message is not stored twice.
func (h *handler) begin(ctx context.Context, b newConversation) error {
	now := time.Now()
	if err := ctx.Err(); err != nil {
		return err
	}
	// A client that leaves must not stop this halfway: a message that is in the log needs an owner and a turn.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginTimeout)
	defer cancel()
	if len(b.earlier) > 0 {
		if err := h.addEarlier(ctx, b); err != nil {
			return err
		}
	}
	if err := b.check(ctx, h.store); err != nil {
		return err
	}
	if err := engine.Post(ctx, h.store, h.Open, b.id, b.message, now); err != nil {
		return orMayBeStored(err)
	}
	if err := b.check(ctx, h.store); err != nil {
		return err
	}
	err := h.store.Describe(ctx, b.id, history.Change{Owner: &b.owner, Title: &b.title, Tags: &b.tags})
	if err != nil {
		return errors.Join(err, errMayBeStored)
	}
	bounded, cancel := context.WithTimeout(ctx, recheckTimeout)
	defer cancel()
	err = h.sendToEngine(engine.MustExist(bounded), b.id, b.message)
	if err == nil || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil || errors.Is(err, engine.ErrWaiting) {
		return nil // the turn is under way
	}
	return errors.Join(err, errMayBeStored) // the next start of the engine continues it
}

// beginTimeout bounds the beginning of a conversation whose client has gone.
const beginTimeout = 20 * time.Second

// check returns an error if the conversation has begun with another message, because the key was used before.
func (b *newConversation) check(ctx context.Context, log history.Log) error {
	if !b.isKeyed {
		return nil
	}
	return repeats.CheckBegun(ctx, log, b.id, b.message)
}

// recheckTimeout bounds how long a request waits for a turn that is under way already: the request is
// repeated, or the engine has found the message in the log by itself.
const recheckTimeout = 2 * time.Second

// sendToEngine sends a message to the engine. It succeeds if the log has the message already.
func (h *handler) sendToEngine(ctx context.Context, id string, user canister.User) error {
	h.feed.prepare(ctx, id) // the client is going to read the events
	return sendTo(ctx, h.engine, id, user)
}

// sendTo is sendToEngine without preparing a reader.
func sendTo(ctx context.Context, e engine.Engine, id string, user canister.User) error {
	if err := unlessKept(e.Send(ctx, id, user)); err != nil {
		return orMayBeStored(err)
	}
	return nil
}

// unlessKept returns the error of an engine, or nil if it is engine.ErrKept: the log has the message, the answer or the cancel.
func unlessKept(err error) error {
	if errors.Is(err, engine.ErrKept) {
		return nil
	}
	return err
}

// orMayBeStored adds errMayBeStored to the error of a message that was sent, unless it says that nothing was stored. A
// panic says nothing: the store may have panicked after it had the message.
func orMayBeStored(err error) error {
	refused, unopened, panicked := new(invoker.Failure), new(programerror.Error), new(contain.Panic)
	isCertain := errors.As(err, &refused) || errors.As(err, &unopened) && !errors.As(err, &panicked)
	for _, one := range []error{engine.ErrWaiting, engine.ErrBusy, engine.ErrClosed, history.ErrNotFound} {
		isCertain = isCertain || errors.Is(err, one)
	}
	if isCertain {
		return err
	}
	return errors.Join(err, errMayBeStored)
}

// addEarlier adds earlier messages to a new conversation, after its instructions. If several
// requests begin the conversation at once, only one of them adds its messages.
func (h *handler) addEarlier(ctx context.Context, b newConversation) error {
	for i, c := range b.earlier {
		if c.Header().ID == "" {
			b.earlier[i] = canister.WithHead(c, canister.Head{ID: derived("earlier", b.id, strconv.Itoa(i))})
		}
	}
	open := h.Open
	if open == nil {
		open = func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(noModel{}, nil, &converse.Options{ID: id, Log: h.store}), nil
		}
	}
	conv, err := open(ctx, b.id)
	if err != nil {
		return err
	}
	err = conv.Add(ctx, b.earlier...)
	if err != nil {
		isFirst := func(c canister.Canister) bool { return c.Header().ID == b.earlier[0].Header().ID }
		if first, _, _ := logtail.Before(ctx, h.store, b.id, math.MaxInt, isFirst); first != nil {
			err = nil
		}
	}
	return errors.Join(err, conv.Close(context.WithoutCancel(ctx)))
}

// noModel is the model of a conversation that only adds canisters.
type noModel struct{}

func (noModel) Exchange(context.Context, *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) { yield(nil, errors.ErrUnsupported) }
}

// createMessage sends a message to a conversation. It waits while a turn is under way.
func (h *handler) createMessage(w http.ResponseWriter, r *http.Request) error {
	found, err := h.owned(r)
	if err != nil {
		return err
	}
	var form message
	if err := decode(w, r, &form); err != nil {
		return err
	}
	key, err := keyOf(r)
	if err != nil {
		return err
	}
	purpose := "message"
	if found.ID == derived("conversation", found.Owner, key) { // the key has begun it, with another message
		purpose = "next message"
	}
	user, err := form.canister(purpose, found.Owner, key)
	if err != nil {
		return err
	}
	isNamed := form.ID+key != ""
	if isNamed { // the message of a turn that has failed resumes it
		err = repeats.Check(r.Context(), h.store, found.ID, user)
	}
	if err == nil {
		err = h.Admit(r.Context(), Entry{Conversation: found.ID, Canister: user}, func(ctx context.Context) error { return h.sendToEngine(engine.MustExist(ctx), found.ID, user) })
	}
	if err == nil && isNamed { // another one may have come first
		err = repeats.Check(r.Context(), h.store, found.ID, user)
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, map[string]string{"message": user.ID})
	return nil
}

// show writes one conversation with its state.
func (h *handler) show(w http.ResponseWriter, r *http.Request) error {
	found, err := h.owned(r)
	if err != nil {
		return err
	}
	form := infoOf(found)
	if form.State, form.Waits, err = h.state(r.Context(), found.ID); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, form)
	return nil
}

// state returns the state of a conversation and its open waits.
func (h *handler) state(ctx context.Context, id string) (string, []openwaits.Wait, error) {
	now := time.Now()
	start, canisters, err := engine.LastTurn(ctx, h.store, id, now)
	if err != nil {
		return "", nil, err
	}
	switch nextOf(h.Limits, id, canisters, now).(type) {
	case converse.Done:
		return stateDone, nil, nil
	case converse.Await:
		return stateWaiting, openwaits.Open(id, canisters, now), nil
	}
	if ended, hasEnded := givenUp(h.engine, id, start, canisters); hasEnded && ended.Error == "" {
		return stateDone, nil, nil
	} else if hasEnded {
		return stateFailed, nil, nil
	}
	return stateOpen, nil, nil
}

// givenUp returns how the engine has given up the last turn of a conversation, whose canisters begin after start, if it
// has, as far as it knows: the log does not show that. Without an Error, a budget has ended the turn.
func givenUp(e engine.Engine, id string, start int, canisters []canister.Canister) (ended engine.Ended, hasEnded bool) {
	if of, isKnown := e.(interface {
		Failed(string, int) (engine.Ended, bool)
	}); isKnown {
		ended, hasEnded = of.Failed(id, start+len(canisters))
	}
	return ended, hasEnded && (ended.Turn == "" || ended.Turn == compaction.LastUserID(canisters))
}

// nextOf returns the next step of a conversation; limits may be nil.
func nextOf(limits func() converse.Limits, id string, canisters []canister.Canister, now time.Time) converse.Command {
	policy := converse.Policy{Conversation: id}
	if limits != nil {
		policy.Limits = limits()
	}
	return converse.Next(canisters, policy, now)
}

// cancel ends the turn of a conversation.
func (h *handler) cancel(w http.ResponseWriter, r *http.Request) error {
	found, err := h.owned(r)
	if err != nil {
		return err
	}
	if err := h.endTurn(r.Context(), found.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// remove deletes a conversation, also if the client leaves meanwhile. A turn that is under way is cancelled first.
func (h *handler) remove(w http.ResponseWriter, r *http.Request) error {
	found, err := h.owned(r)
	if err != nil {
		return err
	}
	if err := h.endTurn(r.Context(), found.ID); err != nil {
		return err
	}
	ctx, cancel := turncancel.Outlive(r.Context())
	defer cancel()
	if err := h.store.Delete(ctx, found.ID, history.AnyLength); err != nil {
		return err
	}
	h.feed.deleted(found.ID)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// fork creates a conversation that begins like another one.
func (h *handler) fork(w http.ResponseWriter, r *http.Request) error {
	found, err := h.owned(r)
	if err != nil {
		return err
	}
	form := struct {
		Position int `json:"position"`
	}{found.Length}
	if err := decode(w, r, &form); err != nil {
		return err
	}
	if form.Position < 1 || form.Position > found.Length {
		return invalid("position", "The conversation has the positions 1 to "+strconv.Itoa(found.Length)+".", "Use one of these.")
	}
	to := newID()
	if err := h.store.Fork(r.Context(), found.ID, form.Position, to); err != nil {
		return err
	}
	created, err := h.store.Info(r.Context(), to)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/conversations/"+to)
	writeJSON(w, http.StatusCreated, infoOf(created))
	return nil
}

// events streams the events of a conversation.
func (h *handler) events(w http.ResponseWriter, r *http.Request) error {
	found, err := h.owned(r)
	if err != nil {
		return err
	}
	end, err := h.openStream(found.Owner, true)
	if err != nil {
		return err
	}
	defer end()
	if r.ContentLength == 0 { // net/http waits for the rest of a body
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it would end the stream
	}
	h.feed.Serve(w, r, found.ID, h.Heartbeat)
	return nil
}
