// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/url"
	"strings"

	"github.com/consort-go/consort/converse/history"
)

// Placeholders of [Options].TraceURL.
const (
	traceHolder        = "{trace_id}"
	conversationHolder = "{conversation_id}"
)

// traceLink returns a link to the page of a trace of a conversation, or nil if there is no address.
// An address with a place for the ID of a trace needs one, and another address must have none.
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
