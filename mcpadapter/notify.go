// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"encoding/json"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// notified handles the notifications that concern this package and leaves the others to
// the SDK by returning false. The reader of the connection calls it; it does not block.
func (c *connection) notified(n *jsonrpc.Request) bool {
	switch n.Method {
	case "notifications/tools/list_changed":
		c.notifications.toolsChanged()
	case "notifications/resources/list_changed":
		c.notifications.resources.Note()
	case "notifications/prompts/list_changed":
		c.notifications.prompts.Note()
	case "notifications/resources/updated":
		var params struct{ URI string }
		if json.Unmarshal(n.Params, &params) == nil {
			c.updated(params.URI)
		}
	case "notifications/subscriptions/acknowledged":
		c.listeners.acknowledged(n.Params)
	case "notifications/elicitation/complete":
		c.questions.elicitationComplete(n.Params)
	case "notifications/message":
		c.serverLog(n.Params)
	default:
		return false
	}
	return true
}

// levels maps the log levels of the protocol (RFC 5424, § 6.2.1; MCP 2025-11-25,
// server/utilities/logging). None maps to a level that ends this program.
var levels = map[string]zapcore.Level{
	"debug":     zapcore.DebugLevel,
	"info":      zapcore.InfoLevel,
	"notice":    zapcore.InfoLevel,
	"warning":   zapcore.WarnLevel,
	"error":     zapcore.ErrorLevel,
	"critical":  zapcore.ErrorLevel,
	"alert":     zapcore.ErrorLevel,
	"emergency": zapcore.ErrorLevel,
}

// maxLogged bounds one entry of a server's log.
const maxLogged = 4 << 10

func (c *connection) serverLog(params json.RawMessage) {
	var entry struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if json.Unmarshal(params, &entry) != nil {
		return
	}
	level, known := levels[entry.Level]
	if !known {
		level = zapcore.InfoLevel
	}
	// An entry does not name its call. The call gets it only if it is the only one in
	// flight, on a connection that only one client uses.
	if x := c.interceptor.only(); x != nil && known && !c.interceptor.isShared() {
		said := invoker.LogEntry{Level: entry.Level, Logger: entry.Logger, Data: entry.Data, Logged: c.log.Core().Enabled(level)}
		_ = contain.Call("Call.Log", func() { x.call.Note(said) }) // a panic is not the connection's fault
	}
	if !c.log.Core().Enabled(level) {
		return
	}
	text := string(entry.Data)
	_ = json.Unmarshal(entry.Data, &text) // plain text reads better without its quotes
	text = subprocess.CleanLine(textcut.Bytes(text, maxLogged))
	c.log.Log(level, "the server says", logevent.ServerSaid, zap.String("data", text),
		zap.String("level", subprocess.CleanLine(textcut.Bytes(entry.Level, 64))), zap.String("logger", subprocess.CleanLine(textcut.Bytes(entry.Logger, maxLogged))))
}
