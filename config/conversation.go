// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/grammar"
)

func (c *Conversation) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("instructions", grammar.Text(&c.Instructions)),
		grammar.Key("exchanges", grammar.Integer(&c.Exchanges, 1)),
		grammar.Key("time", grammar.Duration(&c.Time)),
		grammar.Key("tokens", grammar.Integer(&c.Tokens, 1)),
		grammar.Key("parallel", grammar.Integer(&c.Parallel, 1)),
		grammar.Key("final_answer", grammar.Boolean(&c.FinalAnswer)),
		grammar.Key("result_bytes", grammar.Integer(&c.ResultBytes, 1)),
		grammar.Key("spill", grammar.Path(&c.Spill)),
		grammar.Key("tools", grammar.Integer(&c.Tools, 1)),
		grammar.Key("identity", grammar.Each(&c.Identity, grammar.Text)),
	}
}
