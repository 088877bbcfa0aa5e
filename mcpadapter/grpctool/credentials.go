// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// legalKey matches the metadata names that gRPC allows (gRPC over HTTP/2, § Requests).
var legalKey = regexp.MustCompile(`^[0-9a-z_.-]+$`)

// check returns what is wrong with the options, or nil.
func (s *source) check() error {
	o := &s.options
	if s.target == "" || strings.HasPrefix(s.target, "http://") || strings.HasPrefix(s.target, "https://") {
		return fmt.Errorf("the address %q is not of the form host:port; TLS is used unless Options.Plaintext is set", s.target)
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(o.Metadata)) {
		wrong = append(wrong, checkKey(name))
		if _, err := metadataText(name, o.Metadata[name]); err != nil {
			wrong = append(wrong, fmt.Errorf("the metadata %q cannot be sent: %w", name, err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.TrustedMetadata)) {
		wrong = append(wrong, checkKey(name))
		if o.TrustedMetadata[name] == "" {
			wrong = append(wrong, fmt.Errorf("the metadata %q has no name of a trusted value", name))
		}
	}
	if _, err := metadataText("authorization", "Bearer "+o.BearerToken); o.BearerToken != "" && err != nil {
		wrong = append(wrong, errors.New("the bearer token cannot be sent: it has leading or trailing spaces, or is not printable ASCII"))
	}
	secret := s.secret || o.BearerToken != "" || o.Token != nil || len(o.Metadata) > 0 || len(o.TrustedMetadata) > 0
	if secret && o.Plaintext && !o.PlaintextSecrets && !IsLocal(s.target) {
		wrong = append(wrong, fmt.Errorf("tokens and metadata would be sent unencrypted to %s; use TLS, or set Options.PlaintextSecrets", s.target))
	}
	return errors.Join(wrong...)
}

func checkKey(name string) error {
	if !legalKey.MatchString(name) || strings.HasPrefix(name, "grpc-") {
		return fmt.Errorf("metadata cannot be named %q: names are lower-case letters, digits, '-', '_' and '.', and do not begin with grpc-", name)
	}
	return nil
}

// standing returns the metadata that is sent with every request.
func (s *source) standing() metadata.MD {
	md := metadata.New(s.options.Metadata)
	for name, value := range s.own {
		md.Set(name, value)
	}
	return md
}

// outgoing adds the metadata of a request, including its trace context. If personal is
// set, it also adds the trusted values that say on whose behalf the call is made. The
// error is an UNAUTHORIZED failure; nothing was sent then.
func (s *source) outgoing(ctx context.Context, personal bool) (context.Context, error) {
	md := s.standing()
	token, err := s.options.token(ctx)
	if err != nil {
		return nil, &invoker.Failure{Code: invoker.Unauthorized, Message: "The server requires authorization, which could not be obtained.", Cause: err}
	}
	if token != "" {
		md.Set("authorization", "Bearer "+token)
	}
	if personal {
		if err := s.options.addTrusted(ctx, md); err != nil {
			return nil, &invoker.Failure{Code: invoker.Unauthorized, Message: "The call was not made: " + err.Error() + ".", Cause: err}
		}
	}
	telemetry.Inject(ctx, headers(md))
	if len(md) == 0 {
		return ctx, nil
	}
	return metadata.NewOutgoingContext(ctx, md), nil
}

// withMetadataOf returns ctx with the outgoing metadata of other.
func withMetadataOf(ctx, other context.Context) context.Context {
	md, _ := metadata.FromOutgoingContext(other)
	return metadata.NewOutgoingContext(ctx, md)
}

// cleaner returns a function that removes the secrets of a request from a text of the server,
// which may repeat them. ctx has the metadata that was sent.
func (o *Options) cleaner(ctx context.Context) func(text string) string {
	md, _ := metadata.FromOutgoingContext(ctx)
	secrets := slices.Concat(slices.Collect(maps.Values(o.Metadata)), md.Get("authorization"))
	for name := range o.TrustedMetadata {
		secrets = append(secrets, md.Get(name)...)
	}
	return redact.Sent(secrets...)
}

// cleaned removes the secrets of a request from the error of the server.
func (o *Options) cleaned(ctx context.Context, err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	text := o.cleaner(ctx)(s.Message())
	if text == s.Message() {
		return err
	}
	clean := s.Proto()
	clean.Message = text
	return status.ErrorProto(clean)
}

func (o *Options) token(ctx context.Context) (string, error) {
	if o.Token == nil {
		return o.BearerToken, nil
	}
	var token string
	var err error
	if panicked := contain.Call("Options.Token", func() { token, err = o.Token(ctx) }); panicked != nil {
		return "", panicked // streams call it on separate goroutines
	}
	err = contain.Error(err)
	if err == nil && token == "" {
		err = errors.New("Options.Token returned an empty token")
	}
	if err == nil {
		_, err = metadataText("authorization", token)
	}
	return token, err
}

func (o *Options) addTrusted(ctx context.Context, md metadata.MD) error {
	for key, name := range o.TrustedMetadata {
		value, ok := invoker.TrustedValue(ctx, name)
		if !ok {
			return fmt.Errorf("the trusted value %q is missing", name)
		}
		text, err := trustedText(value)
		if err == nil {
			text, err = metadataText(key, text)
		}
		if err != nil {
			return fmt.Errorf("the trusted value %q cannot be sent in the metadata %q: %w", name, key, err)
		}
		md.Set(key, text)
	}
	return nil
}

// trustedText returns a trusted value as text: a string unchanged, anything else as
// JSON.
func trustedText(value invoker.Value) (string, error) {
	encoded, err := value.Reveal()
	if err != nil {
		return "", err
	}
	text := string(jsontext.Compact(encoded))
	_ = json.Unmarshal(encoded, &text) // values other than strings stay JSON
	return text, nil
}

// metadataText returns the text if metadata with this name can carry it.
func metadataText(name, text string) (string, error) {
	if strings.HasSuffix(name, "-bin") {
		return text, nil
	}
	unfit := func(r rune) bool { return r < ' ' || r > '~' }
	if text == "" || strings.ContainsFunc(text, unfit) || strings.TrimSpace(text) != text {
		return "", errors.New("it is empty, has leading or trailing spaces, or is not printable ASCII; metadata whose name ends in -bin accepts any text")
	}
	return text, nil
}
