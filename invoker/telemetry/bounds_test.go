// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestCodesThatServersMakeUpAreNotMeasured(t *testing.T) {
	for code, measured := range map[string]string{
		"-32602": "-32602", "-32700": "-32700", "-32042": "-32042", "NOT_FOUND": "NOT_FOUND", "404": "404",
		"1001": "_OTHER", "-32768": "_OTHER", "0": "_OTHER", "12345678901234567890": "_OTHER",
	} {
		s := see(t, telemetry.Options{})
		_, request := telemetry.StartRequest(s.context(), telemetry.Call{Method: "tools/list"}, telemetry.Peer{})
		request.Refused(code)
		request.End(nil, &telemetry.Fault{Type: code, Message: "No."})
		span := s.one("tools/list")
		point := s.metrics()["mcp.client.operation.duration"].Data.(metricdata.Histogram[float64]).DataPoints[0]
		for _, key := range []string{"error.type", "rpc.response.status_code"} {
			if got := valueOf(span, key).AsString(); got != code {
				t.Errorf("%s: the span says %s = %q", code, key, got)
			}
			if got, _ := point.Attributes.Value(attribute.Key(key)); got.AsString() != measured {
				t.Errorf("%s: it is measured as %s = %q, want %q", code, key, got.AsString(), measured)
			}
		}
	}
}

// Nobody has said that it is a secret, but where it stands does.
func TestCredentialsOfURIsAreNotRecorded(t *testing.T) {
	s := see(t, telemetry.Options{})
	_, request := telemetry.StartRequest(s.context(), telemetry.Call{Method: "resources/read", URI: "https://me:pass@h/a?token=t&b=c"}, telemetry.Peer{})
	request.End(nil, nil)
	if got, want := valueOf(s.one("resources/read"), "mcp.resource.uri").AsString(), "https://[secret]@h/a?token=[secret]&b=c"; got != want {
		t.Errorf("the URI is %s, want %s", got, want)
	}
}

// A server may tell any number.
func TestLessThanNoTokensAreNotMeasured(t *testing.T) {
	s := see(t, telemetry.Options{})
	for _, usage := range []canister.Usage{{Input: -5, Output: -1}, {Input: 3, Output: 4}} {
		_, chat := telemetry.StartChat(s.context(), telemetry.ChatRequest{})
		chat.End(telemetry.ChatResult{Message: canister.Assistant{Usage: &usage}})
	}
	var sum int64
	for _, point := range s.metrics()["gen_ai.client.token.usage"].Data.(metricdata.Histogram[int64]).DataPoints {
		sum += point.Sum
	}
	if sum != 7 {
		t.Errorf("%d tokens were measured, want 7", sum)
	}
}
