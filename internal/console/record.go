// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net/http"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// record writes an action of a person to the audit trail and the log. The details are names and
// values, each a string or an object of strings.
func (c *Console) record(r *http.Request, p *person, what, conversation string, err error, details ...any) {
	arguments := map[string]any{}
	for i := 0; i+1 < len(details); i += 2 {
		arguments[details[i].(string)] = details[i+1]
	}
	form, _ := json.Marshal(arguments) // strings have a JSON form
	record := audit.Record{Asker: "console", ClientName: p.Name, Conversation: conversation, Tool: what, Arguments: form, By: p.Name, Code: audit.OK}
	if err != nil {
		record.Code, record.Error = string(invoker.AsFailure(err).Code), c.Redact(err.Error())
	}
	c.Audit.Keep(r.Context(), record)
	logevent.Log(r.Context(), c.Logger, zapcore.InfoLevel, "a person acted in the console", logevent.ConsoleAction,
		zap.String("action", what), zap.String("client_name", p.Name), zap.String(telemetry.ConversationField, conversation), zap.String("code", record.Code))
}
