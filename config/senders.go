// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/consort-go/consort/config/internal/serving"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/sender"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// WithSender returns a context for the messages of the caller of ctx: engine.Post, and so the
// Send of an engine, records the sender in each message, for [Assembly.ValuesOf]. If an issuer
// identified the caller, the record has the trusted values that are not secret.
func (a *Assembly) WithSender(ctx context.Context) (context.Context, error) {
	owner, err := a.OwnerOf(ctx)
	if err != nil {
		return ctx, err
	}
	s := &sender.Sender{Owner: owner, Client: access.MeasuredFrom(ctx)}
	if s.Client != "" || access.NameFrom(ctx) == "" {
		return sender.With(ctx, s), nil
	}
	s.Issuer, s.Values = issuerDigest(a.latest().issuer), map[string]json.RawMessage{}
	for _, value := range invoker.TrustedFrom(ctx) {
		if value.IsSecret() {
			continue
		}
		if s.Values[value.Name()], err = value.Reveal(); err != nil {
			return ctx, err
		}
	}
	return sender.With(ctx, s), nil
}

// issuerDigest returns a digest of the settings that the meaning of an issuer's tokens depends on;
// empty without an issuer.
func issuerDigest(o *serve.OIDC) string {
	if o == nil {
		return ""
	}
	text, _ := json.Marshal([]any{o.Issuer.Reveal(), o.Audience.Reveal(), o.Scopes, o.Name, o.Trusted}) // texts always marshal
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ValuesOf returns the trusted values for a turn of a conversation in log, for a process without
// a caller: the values of the client that sent the last message. If that is not known, they are the
// values that all clients with the owner of the conversation share. ValuesOf returns an
// error if the configuration no longer has the client, its trusted values have changed, or the
// settings of its issuer have changed. A nil log has no messages.
func (a *Assembly) ValuesOf(ctx context.Context, info history.Info, log history.Log) ([]invoker.Value, error) {
	a = a.latest()
	var sent *sender.Sender
	var err error
	if log != nil {
		if sent, err = sender.Last(ctx, log, info.ID, info.Owner); err != nil {
			return nil, fmt.Errorf("config: the sender of the last message of %q cannot be read: %w", info.ID, err)
		}
	}
	if sent != nil && sent.Issuer != "" {
		return a.identifiedValues(info, sent)
	}
	var matching []serving.Certified
	for _, client := range a.clients() {
		if a.owns(info, client.Trusted) && (sent == nil || sent.Client == client.Name) {
			matching = append(matching, client)
		}
	}
	if len(matching) == 0 && sent != nil && sent.Client != "" {
		matching = a.withCertificate(info, sent.Client)
	}
	if len(matching) == 0 && (sent == nil || sent.Client == "") && a.owns(info, nil) {
		return nil, nil
	}
	if len(matching) == 0 && sent != nil && sent.Client != "" {
		return nil, fmt.Errorf("config: the client %q, which sent the last message of the conversation %q, is no longer in the configuration, or has other trusted values: send another message", sent.Client, info.ID)
	}
	if len(matching) == 0 {
		return nil, fmt.Errorf("config: the conversation %q belongs to %q, who is no longer in the configuration", info.ID, info.Owner)
	}
	agreed, withheld := agreement(matching)
	if len(withheld) > 0 {
		var names []string
		for _, client := range matching {
			names = append(names, client.Name)
		}
		a.Logger.Warn("the message of a turn does not say which client sent it, so values on which the clients do not agree are withheld: when nothing is waited for, send another message", logevent.SenderUnknown,
			zap.String(telemetry.ConversationField, info.ID), zap.Strings("clients", names), zap.Strings("withheld", withheld))
	}
	return agreed, nil
}

// clients returns the callers that the configuration knows, except one without any values.
func (a *Assembly) clients() []serving.Certified {
	clients := append([]serving.Certified{{Trusted: a.Serve.Trusted}}, a.certified...)
	for _, known := range a.Serve.Tokens {
		clients = append(clients, serving.Certified{Name: known.Name, Trusted: known.Trusted})
	}
	return clients
}

// Sharing returns the names of the first clients whose conversations have one owner; nil if each has its own. Tokens
// and certificates with the same name are one client; each without a name is a client with an empty one.
func (a *Assembly) Sharing() []string {
	var owners []string // in the order of the clients
	owned := map[string][]string{}
	for _, known := range a.clients()[1:] { // without the one over standard input
		owner, err := a.OwnerOf(access.WithName(invoker.WithTrusted(context.Background(), known.Trusted...), known.Name))
		if err == nil && (known.Name == "" || !slices.Contains(owned[owner], known.Name)) {
			owners, owned[owner] = append(owners, owner), append(owned[owner], known.Name)
		}
	}
	i := slices.IndexFunc(owners, func(owner string) bool { return len(owned[owner]) > 1 })
	if i < 0 {
		return nil
	}
	return owned[owners[i]]
}

// withCertificate returns the clients with a name as they are if they also have the certificate of
// another client, and both together own a conversation.
func (a *Assembly) withCertificate(info history.Info, name string) (matching []serving.Certified) {
	for _, client := range a.clients() {
		for _, certified := range a.certified {
			if both := slices.Concat(certified.Trusted, client.Trusted); client.Name == name && a.owns(info, both) {
				matching = append(matching, serving.Certified{Name: name, Trusted: both})
			}
		}
	}
	return matching
}

// owns reports whether a conversation belongs to a caller with trusted values.
func (a *Assembly) owns(info history.Info, values []invoker.Value) bool {
	owner, err := a.OwnerOf(invoker.WithTrusted(context.Background(), values...))
	return err == nil && owner == info.Owner
}

// identifiedValues returns the values of a sender that an issuer identified. They are combined with the
// values of a certificate if only both together belong to the owner.
func (a *Assembly) identifiedValues(info history.Info, sent *sender.Sender) ([]invoker.Value, error) {
	if sent.Issuer != issuerDigest(a.issuer) {
		return nil, fmt.Errorf("config: a person whom an issuer identified sent the last message of the conversation %q, and serve.oidc has changed since, or is gone: another message of the person continues it", info.ID)
	}
	var values []invoker.Value
	for _, name := range slices.Sorted(maps.Keys(sent.Values)) {
		if name == "" || !json.Valid(sent.Values[name]) {
			return nil, fmt.Errorf("config: the conversation %q has a record of its sender that is damaged", info.ID)
		}
		values = append(values, invoker.TrustedJSON(name, sent.Values[name]))
	}
	for _, client := range append([]serving.Certified{{}}, a.certified...) {
		if both := slices.Concat(client.Trusted, values); a.owns(info, both) {
			return both, nil
		}
	}
	return nil, fmt.Errorf("config: the conversation %q belongs to %q, and the sender of its last message is somebody else now, because conversation.identity has changed", info.ID, info.Owner)
}

// agreement returns the trusted values that all clients have, and the names of the others.
func agreement(clients []serving.Certified) (agreed []invoker.Value, withheld []string) {
	having := map[string]int{} // the number of clients that have the first value of a name
	first := map[string]invoker.Value{}
	for _, client := range clients {
		for _, value := range invoker.TrustedFrom(invoker.WithTrusted(context.Background(), client.Trusted...)) {
			known, ok := first[value.Name()]
			if !ok {
				first[value.Name()] = value
			}
			if !ok || isSame(known, value) {
				having[value.Name()]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		if having[name] == len(clients) {
			agreed = append(agreed, first[name])
		} else {
			withheld = append(withheld, name)
		}
	}
	return agreed, withheld
}

// isSame reports whether two trusted values have the same content.
func isSame(one, other invoker.Value) bool {
	a, err := one.Reveal()
	b, otherErr := other.Reveal()
	return err == nil && otherErr == nil && bytes.Equal(a, b)
}
