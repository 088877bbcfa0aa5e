// SPDX-License-Identifier: Apache-2.0

// Package servedcall has the parts of a client's call that the servers of all protocols share.
package servedcall

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// maxKey bounds the length of an idempotency key, in bytes. A longer one is ignored.
const maxKey = 256

// ID returns the ID of a call, which begins with the protocol. A client may choose the rest
// with an idempotency key, but only within its own scope: whose is hashed into it. If either is
// empty, each request gets a new ID.
func ID(protocol, whose, key string) string {
	if key == "" || whose == "" || len(key) > maxKey {
		return protocol + "-" + rand.Text()
	}
	sum := sha256.Sum256([]byte(whose + "\x00" + key))
	return protocol + "-" + base32.StdEncoding.EncodeToString(sum[:16])[:26]
}

// Item returns how selections see a tool. Own is the ensemble of the server's own tools.
func Item(t *ensemble.Tool, own *ensemble.Ensemble) ensemble.Item {
	def := t.Definition()
	if t.Ensemble() == own {
		return ensemble.Item{Kind: ensemble.ToolItem, Name: def.Name, Hints: def.Hints}
	}
	return ensemble.Item{Kind: ensemble.ToolItem, Ensemble: t.Ensemble().Name(), Name: def.Name, Hints: t.TrustedHints()}
}

// Unentitled returns the failure of a call that lacks a trusted value that its tool needs; nil
// if it has them all. Invokers refuse such calls too, but not every one.
func Unentitled(ctx context.Context, tool *invoker.Definition) *invoker.Failure {
	for _, need := range tool.Needs {
		if _, ok := invoker.TrustedValue(ctx, need); !ok {
			return invoker.Failf(invoker.Unauthorized, "The tool acts on behalf of a user, and the server does not know the user of this call.")
		}
	}
	return nil
}

// FailureOf returns the error of a call as a failure, or nil. Closed is the cause of ctx if the
// server ended meanwhile.
func FailureOf(ctx context.Context, err, closed error) *invoker.Failure {
	failure := invoker.AsFailure(err)
	if failure != nil && context.Cause(ctx) == closed && errors.Is(err, context.Canceled) {
		return invoker.Failf(invoker.Canceled, "The server ended during the call. It may or may not have taken effect.")
	}
	return failure
}

// Account is where a server accounts for the calls of its clients.
type Account struct {
	Audit *audit.Trail
	Log   *zap.Logger
}

// Keep keeps the audit record of a call that has ended, and logs the reason of a failure, which
// the client is not told.
// Tool is the name that the client used, and fields say who the client is.
func (a Account) Keep(ctx context.Context, record *audit.Record, tool string, content []canister.Content, failure *invoker.Failure, fields ...zap.Field) {
	var err error
	if failure != nil {
		err = failure
	}
	record.Ended(content, err)
	a.Audit.Keep(ctx, *record)
	if failure == nil {
		return
	}
	fields = append(fields, zap.String("tool", tool), zap.String("code", string(failure.Code)), zap.String("invocation", record.Invocation))
	if record.ClientName != "" {
		fields = append(fields, zap.String("client_name", record.ClientName))
	}
	var forged *invoker.Forged
	switch {
	case errors.As(failure, &forged):
		logevent.Log(ctx, a.Log, zapcore.WarnLevel, "a client sent trusted values as arguments", logevent.ServeCallForged, append(fields, zap.Strings("forged", forged.Names))...)
	case failure.Cause != nil:
		logevent.Log(ctx, a.Log, zapcore.WarnLevel, "a call failed", logevent.ServeCallFailed, append(fields, zap.NamedError("cause", failure.Cause))...)
	default:
		logevent.Log(ctx, a.Log, zapcore.DebugLevel, "a call failed", logevent.ServeCallFailed, fields...)
	}
}
