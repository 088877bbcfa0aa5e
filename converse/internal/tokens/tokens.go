// SPDX-License-Identifier: Apache-2.0

// Package tokens computes upper bounds of the tokens of requests to models, for
// budgets.
package tokens

import (
	"cmp"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/invoker"
)

// Upper bounds of the tokens of a request, in addition to the bytes of its texts.
const (
	mostPerMessage = 64   // the overhead of a message or a content, and its name
	mostPerMedia   = 8192 // an image or audio, or a page of a PDF
	mostPerRequest = 512
)

// Most returns an upper bound of the tokens of a request: a token has at least one
// byte. For the canisters up to the last message that counted accepts, if it has one, it
// uses the count of the server. That count includes the first of the tools, and counted returns
// how many. If whole, the history of the conversation, was shortened after that message, the
// server has counted more than is sent: the bound of the texts counts if it is lower. Tools that
// are nil cost nothing.
func Most(tools []*invoker.Definition, history, whole []canister.Canister, counted func(canister.Assistant) (first int, ok bool)) int64 {
	tokens := int64(mostPerRequest)
	for i := len(history) - 1; i >= 0; i-- {
		said, ok := history[i].(canister.Assistant)
		if ok && said.Usage != nil && said.Usage.Input > 0 && said.Usage.Output >= 0 {
			if first, ok := counted(said); ok {
				most := budget.Sum(tokens+mostOfTools(tools[first:]), cmp.Or(said.Usage.Context, budget.Sum(said.Usage.Input, said.Usage.Output)))
				if compaction.Since(whole, said.ID) {
					most = min(most, mostOfTexts(tools, history))
				}
				return most
			}
		}
		tokens += mostOf(history[i])
	}
	return tokens + mostOfTools(tools)
}

// mostOfTexts returns an upper bound of the tokens of a request, in bytes. For a message of the model
// it uses the server's count of its output if that is higher.
func mostOfTexts(tools []*invoker.Definition, history []canister.Canister) int64 {
	tokens := mostPerRequest + mostOfTools(tools)
	for _, c := range history {
		most := mostOf(c)
		if said, ok := c.(canister.Assistant); ok && said.Usage != nil {
			most = max(most, said.Usage.Output) // its reasoning may be sent back
		}
		tokens = budget.Sum(tokens, most)
	}
	return tokens
}

// LastID returns the ID of the last canister, or "". It identifies the answer to a history,
// whichever process asks for it.
func LastID(history []canister.Canister) string {
	if len(history) == 0 {
		return ""
	}
	return history[len(history)-1].Header().ID
}

// mostOfTools returns an upper bound of the tokens of definitions.
func mostOfTools(tools []*invoker.Definition) (tokens int64) {
	for _, definition := range tools {
		if definition == nil {
			continue
		}
		tokens += mostPerMessage + int64(len(definition.Name)+len(definition.Title)+len(definition.Description)+len(definition.InputSchema))
	}
	return tokens
}

// mostOf returns an upper bound of the tokens of a canister.
func mostOf(c canister.Canister) int64 {
	tokens := int64(mostPerMessage)
	switch c := c.(type) {
	case canister.Invocation:
		return tokens + int64(len(c.Name)+len(c.CallID)+len(c.Arguments))
	case canister.Document:
		tokens += int64(len(c.Title))
	}
	for _, content := range canister.ContentOf(c) {
		tokens += mostOfContent(content)
	}
	return tokens
}

// mostOfContent returns an upper bound of the tokens of a content.
func mostOfContent(c canister.Content) int64 {
	if compaction.IsMedia(c) {
		return mostPerMedia
	}
	tokens := int64(bounds.Size(c))
	if pages, _ := compaction.Pages(c); pages > 0 {
		tokens = min(tokens, int64(pages)*mostPerMedia)
	}
	return mostPerMessage + tokens
}
