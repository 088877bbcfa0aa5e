// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/converse"
)

// refusal is an error in the words of a server.
type refusal struct {
	status  int
	message string
	code    string // the server's
	kind    string // the type of the error; may be empty
	param   string // the member of the request that it names; may be empty
	html    bool   // the server answered with a page
	match   []string
}

// kind is a kind of refusal, with its marks and its advice.
type kind struct {
	code     string // the Code of the error
	statuses []int  // empty for all
	codes    []string
	words    *regexp.Regexp // without codes and words, the status decides
	// advise returns a line of advice; it may return "".
	advise func(s *Server, r *refusal) string
}

// kinds are the kinds of refusals; the first that fits counts. A request that is too long
// is recognised before, by contextCode. The tests have the whole answers of servers, with
// the reports.
var kinds = []kind{
	{
		code: converse.CodeUnverified, words: regexp.MustCompile(`(?i)organization must be verified`),
		advise: func(s *Server, r *refusal) string {
			switch {
			case strings.Contains(r.message, "stream"):
				return s.line("set", "NoStream", true, ", or verify the organization")
			case strings.Contains(r.message, "summar") && s.isSet("ReasoningSummary"):
				return s.line("remove", "ReasoningSummary", nil, ", or verify the organization")
			}
			return s.line("change", "Name", nil, ", or verify the organization")
		},
	},
	{
		code: converse.CodeAPI, words: regexp.MustCompile(`(?i)use /v1/responses|only supported in v1/responses|not supported in the v1/chat/completions|not accessible via the /chat/completions|/chat/completions is not supported`),
		advise: func(s *Server, _ *refusal) string {
			if strings.Contains(s.Base.Path, "/deployments/") { // Azure has no Responses there
				return s.line("change", "BaseURL", nil, " to https://"+s.Base.Host+"/openai/v1, which has Responses")
			}
			return s.otherAPI("chat", "responses")
		},
	},
	{
		code: converse.CodeAPI, words: regexp.MustCompile(`(?i)not (supported|available|accessible) (in|with|by|via) (the )?(/?v1/|/)?responses|cannot be used with the responses api`),
		advise: func(s *Server, _ *refusal) string { return s.otherAPI("responses", "chat") },
	},
	{
		code: converse.CodeTools, words: regexp.MustCompile(`(?i)--enable-auto-tool-choice`),
		advise: func(*Server, *refusal) string {
			return "start the model's server with --enable-auto-tool-choice and the --tool-call-parser of the model"
		},
	},
	{
		code: converse.CodeTools, words: regexp.MustCompile(`(?i)does not support (tools|tool use|(tool|function)[ -]call)|no endpoints found that support tool use|(tool use|tool calling|function calling|tools) (is|are) not (supported|enabled)`),
		advise: func(s *Server, _ *refusal) string {
			return s.line("change", "Name", nil, " to a model that can use tools")
		},
	},
	{
		code: converse.CodeQuota, codes: []string{"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"},
		words: regexp.MustCompile(`(?i)credit balance is too low|insufficient (balance|credits?|funds)|reached your specified api usage limits`), advise: topUp,
	},
	{code: converse.CodeQuota, statuses: []int{http.StatusPaymentRequired}, advise: topUp},
	{
		code: converse.CodeRegion, codes: []string{"unsupported_country_region_territory"},
		words: regexp.MustCompile(`(?i)unsupported (countries|country)|(country|region|location)[a-z, ]* (is )?not supported`),
		advise: func(s *Server, _ *refusal) string {
			return s.line("set", "BaseURL", nil, " to a provider that serves this country, or to a region of this one that does")
		},
	},
	{
		code: converse.CodeModelNotFound, codes: []string{"model_not_found", "DeploymentNotFound"},
		words:  regexp.MustCompile(`(?i)\bmodel\b.{0,100}(does not exist|not found|not exist)|not a valid model|unknown model|invalid model|does not have access to model|deployment .{0,40}does not exist|model identifier is invalid|on-demand throughput isn|no endpoints (found|available) (for|matching)|^model: `),
		advise: otherModel,
	},
	{
		code: converse.CodeImage,
		codes: []string{
			"invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "invalid_image_mode", "image_parse_error",
			"unsupported_image_media_type", "empty_image_file", "image_too_large", "image_too_small", "image_file_too_large", "image_file_not_found",
			"failed_to_download_image",
		},
		words:  regexp.MustCompile(`(?i)image dimensions exceed|image exceeds .{0,20}maximum|could not process (image|pdf)|pdf (specified|has too many pages)|\d+ pdf pages|too (much media|many images)|image.{0,40}(too large|too big|is not supported|not valid|unsupported)|(unsupported|invalid) image|(timeout|error) while downloading|content\W{1,2}\d+\W{1,2}(image|image_url|pdf)\b`),
		advise: withoutImages,
	},
	{code: converse.CodeImage, words: textAlone, advise: withoutImages},
	{
		code: converse.CodeKey, codes: []string{"invalid_api_key", "authentication_error"}, words: regexp.MustCompile(`(?i)api key not valid|unregistered callers|incorrect api key|invalid x-api-key|didn't provide an api key`), advise: otherKey,
	},
	{code: converse.CodeKey, statuses: []int{http.StatusUnauthorized}, advise: otherKey},
	{
		code: converse.CodeParameter, words: regexp.MustCompile(`(?i)adaptive thinking is not supported`),
		advise: func(s *Server, _ *refusal) string {
			return s.line("set", "Thinking", "4096", ", a number of tokens, as this model needs a budget")
		},
	},
	{
		code: converse.CodeParameter, words: regexp.MustCompile(`(?i)thinking\.type\.enabled\W* is not supported`),
		advise: func(s *Server, _ *refusal) string { return s.line("set", "Thinking", "adaptive", "") },
	},
	{
		code: converse.CodeParameter, words: regexp.MustCompile(`(?i)thinking\.type\.disabled\W* is not supported`),
		advise: func(s *Server, r *refusal) string {
			if strings.Contains(r.message, "between_tools") {
				return s.line("set", "Thinking", "between_tools", "")
			}
			return s.line("remove", "Thinking", nil, ", as this model always thinks; a lower Effort (reasoning_effort in a configuration) makes it think less")
		},
	},
	{
		code: converse.CodeParameter, words: regexp.MustCompile(`(?i)does not support the effort parameter`),
		advise: func(s *Server, _ *refusal) string { return s.refused("output_config") },
	},
	{
		code: converse.CodeParameter, words: regexp.MustCompile(`max_tokens: \d+ > (\d+), which is the maximum`),
		advise: func(s *Server, r *refusal) string {
			most, _ := strconv.Atoi(r.match[1])
			return s.line("set", "MaxTokens", most, "")
		},
	},
	{
		code: converse.CodeParameter, statuses: []int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity},
		codes: []string{"unsupported_parameter", "unknown_parameter", "unsupported_value"}, words: refusedMember, advise: withoutMember,
	},
	{
		code: converse.CodeAddress, statuses: []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect, http.StatusNotFound, http.StatusMethodNotAllowed},
		advise: otherAddress,
	},
}

// textAlone matches the refusals of any image, because the model or its server takes text alone. The
// deserialization errors are DeepSeek's, and the first two llama.cpp's, with status 500.
var textAlone = regexp.MustCompile(`(?i)image input is not supported|unsupported content part type: .?image_url|unknown variant .?image_url|untagged enum ChatCompletionRequestContent|messages\[\d+\]: invalid type: sequence, expected a string|does not (support|accept) image|no endpoints found that support image|not a multimodal model`)

// refusedMember matches messages about a member of a request.
var refusedMember = regexp.MustCompile(`(?i)unsupported (parameter|value)|unknown (parameter|field|argument)|unrecogni[sz]ed (request argument|field|parameter)|extra inputs are not permitted|extra_forbidden|is unsupported|(is|are) deprecated for this model|cannot both be specified|argument not supported|is not supported with this model|(is|are) not supported for this model|does not support [^ ]+ with this model|invalid value|(is|are) not allowed`)

// recognise returns the kind of a refusal; nil for an unknown one.
func (s *Server) recognise(r *refusal) *kind {
	if r.status >= http.StatusInternalServerError && !textAlone.MatchString(r.message) {
		return nil
	}
	for i := range kinds {
		if k := &kinds[i]; k.fits(r) && (k.words != refusedMember || slices.Contains(k.codes, r.code) || withoutMember(s, r) != "") {
			return k
		}
	}
	return nil
}

// fits reports whether a refusal is of the kind, and keeps the match of its words. Of a
// page in HTML only the status counts.
func (k *kind) fits(r *refusal) bool {
	byStatus := k.words == nil && k.codes == nil
	switch {
	case len(k.statuses) > 0 && !slices.Contains(k.statuses, r.status):
		return false
	case byStatus || r.html:
		return byStatus
	case slices.Contains(k.codes, r.code):
		return true
	}
	r.match = k.words.FindStringSubmatch(r.message)
	return r.match != nil
}

// withoutImages advises to send no images.
func withoutImages(s *Server, _ *refusal) string {
	return s.line("set", "NoImages", true, ", so that the model gets a line of text in place of each image and PDF file, or send others")
}

// otherAPI advises to ask in another API.
func (s *Server) otherAPI(from, to string) string {
	if s.API != from {
		return ""
	}
	return s.line("set", "API", to, "")
}

// topUp advises to pay.
func topUp(s *Server, _ *refusal) string {
	where := "with the provider"
	switch ProviderOf(s.Base) {
	case "openai":
		where = "at https://platform.openai.com/settings/organization/billing"
	case "anthropic":
		where = "at https://platform.claude.com/settings/billing"
	}
	return "add credit " + where + ", or use another key: " + otherKey(s, nil)
}

// otherKey advises to set a key.
func otherKey(s *Server, _ *refusal) string {
	if s.KeyVariable != "" {
		return "change the variable " + s.KeyVariable + ", which has the key"
	}
	if s.isSet("APIKey") {
		return s.line("change", "APIKey", nil, "")
	}
	return s.line("set", "APIKey", nil, "")
}

// otherModel advises to name another model.
func otherModel(s *Server, r *refusal) string {
	switch {
	case strings.Contains(r.message, "pulling it") || s.Base.Port() == "11434":
		return s.line("change", "Name", nil, ", or run: ollama pull "+s.Model)
	case strings.HasPrefix(ProviderOf(s.Base), "azure."):
		return s.line("change", "Name", nil, " to the name of a deployment")
	case strings.Contains(r.message, "throughput"):
		return s.line("change", "Name", nil, " to the ID of an inference profile, such as us."+s.Model)
	case strings.Contains(r.message, "data policy"), strings.Contains(r.message, "guardrail"):
		return s.line("change", "Name", nil, ", or allow its providers in the settings of the account")
	case strings.Contains(r.message, "have access"):
		return s.line("change", "Name", nil, ", or let the project of the key use this model")
	}
	return s.line("change", "Name", nil, " to a model that the server has")
}

// withoutMember advises to leave a member of the request out.
func withoutMember(s *Server, r *refusal) string {
	if r.param != "" {
		return s.refused(r.param)
	}
	if member := s.mentioned(r.message); member != "" {
		return s.refused(member)
	}
	return ""
}

// otherAddress advises to use another base URL, or an API that the server has.
func otherAddress(s *Server, r *refusal) string {
	likely := s.likelyBase()
	switch {
	case likely != "":
		return s.line("set", "BaseURL", likely, ", which is probably meant")
	case s.API == "responses" && ProviderOf(s.Base) != "openai" && !r.html:
		return s.line("set", "API", "chat", ", as many servers have no Responses")
	case s.isSet("BaseURL"):
		return s.line("change", "BaseURL", nil, fmt.Sprintf(" to where %s has the API", s.Base.Host))
	}
	return ""
}
