// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// traceKey is the metadata of a message of the model with the ID of its trace; see
// docs/canisters.md.
const traceKey = "io.github.consort-go/trace"

// Placeholders of [Options].TraceURL.
const (
	traceHolder        = "{trace_id}"
	conversationHolder = "{conversation_id}"
)

// traceOf returns the ID of the trace of a message, or "".
func traceOf(a canister.Assistant) string {
	var id string
	if json.Unmarshal(a.Metadata[traceKey], &id) != nil {
		return ""
	}
	return id
}

// traceLink returns a link to a trace of a conversation, or nil without an address. Of one whose
// address has no trace, the ID is empty.
func (c *Console) traceLink(info history.Info, id, title string) part {
	if c.TraceURL == nil {
		return nil
	}
	address := c.TraceURL()
	if address == "" || strings.Contains(address, traceHolder) != (id != "") {
		return nil
	}
	address = strings.ReplaceAll(address, traceHolder, url.QueryEscape(id))
	address = strings.ReplaceAll(address, conversationHolder, url.QueryEscape(info.ID))
	return el("a", href(address), attr("rel", "noreferrer noopener"), attr("target", "_blank"), text(title))
}
