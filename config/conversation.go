// SPDX-License-Identifier: Apache-2.0

package config

func (c *Conversation) fields() []field {
	return []field{
		{"instructions", text(&c.Instructions)},
		{"exchanges", integer(&c.Exchanges, 1)},
		{"time", duration(&c.Time)},
		{"tokens", integer(&c.Tokens, 1)},
		{"parallel", integer(&c.Parallel, 1)},
		{"final_answer", boolean(&c.FinalAnswer)},
		{"result_bytes", integer(&c.ResultBytes, 1)},
		{"spill", directory(&c.Spill)},
		{"tools", integer(&c.Tools, 1)},
		{"identity", each(&c.Identity, text)},
	}
}
