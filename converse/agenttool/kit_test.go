// SPDX-License-Identifier: Apache-2.0

package agenttool_test

import (
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/internal/testing/conversekit"
	"github.com/consort-go/consort/invoker"
)

var userID = invoker.NewTrusted[int64]("user_id")

// done is the answer that ends a turn.
var done = conversetest.Line{Text: "Done."}

func asks(calls ...conversetest.Call) conversetest.Line { return conversetest.Line{Calls: calls} }

// The tools, lines and checks of package conversekit.
var (
	fn, echo, newRoster = conversekit.Tool, conversekit.Echo, conversekit.NewRoster
	call, told          = conversekit.Call, conversekit.LastResult
	sound, played       = conversekit.CheckHistory, conversekit.CheckScript
)
