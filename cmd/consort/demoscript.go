// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/consort-go/consort/internal/openaiserver"
)

// demoScript is what the scripted model says. Each step expects what the tools
// must have answered, and the server refuses the request if they have not: what
// the model says below it could only have learnt from them.
func demoScript(paced bool) openaiserver.Script {
	says := func(text string, calls ...openaiserver.Call) openaiserver.Message {
		m := openaiserver.Message{Text: text, Calls: calls, Delta: 4}
		if paced {
			m.Pace, m.Delay = 6*time.Millisecond, 120*time.Millisecond
		}
		return m
	}
	call := func(name, arguments string) openaiserver.Call {
		return openaiserver.Call{Name: name, Arguments: arguments}
	}
	return openaiserver.Script{Steps: []openaiserver.Step{
		{
			Expect: openaiserver.Expect{Offers: []string{"atlas__weather", "atlas__local_time", "satchel__pack", "satchel__weigh"}},
			Reply: says("I'll look at the weather in both cities, and pack what one always needs meanwhile.",
				call("atlas__weather", `{"city": "Lisbon"}`),
				call("atlas__weather", `{"city": "Olso"}`),
				call("satchel__pack", `{"items": ["passport", "charger", "scarf"]}`)),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 3, Contains: []string{"sunny", "did you mean Oslo?", "passport"}},
			Reply: says("The atlas has no Olso, and says that it is Oslo. Once more, and the time there.",
				call("atlas__weather", `{"city": "Oslo"}`),
				call("atlas__local_time", `{"from": "Lisbon", "to": "Oslo", "time": "12:00"}`)),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 2, Contains: []string{"snow", "13:00"}},
			Reply: says("Snow! That asks for warm things.",
				call("satchel__pack", `{"items": ["wool hat", "gloves", "boots"]}`)),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 1, Contains: []string{"wool hat"}},
			Reply: says("Lisbon has 16 °C and sun tomorrow, Oslo -3 °C and snow. I have packed your passport, " +
				"a charger, a scarf, a wool hat, gloves and boots. When it is 12:00 in Lisbon, it is 13:00 in Oslo."),
		}, {
			Expect: openaiserver.Expect{LastRole: "user", Contains: []string{"scarf"}},
			Reply:  says("", call("satchel__unpack", `{"items": ["scarf"]}`)),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 1, Contains: []string{"in the satchel: passport, charger, wool hat, gloves, boots"}},
			Reply:  says("", call("satchel__weigh", `{}`)),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 1, Contains: []string{"5 items"}},
			Reply:  says("The scarf stays at home. Your satchel weighs 2.5 kg without it."),
		},
	}}
}
