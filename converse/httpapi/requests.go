// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/consort-go/consort/converse/history"
)

// alreadySent answers a request that a client repeats by itself.
func alreadySent(conversation string) error {
	return failure(http.StatusConflict, "already_sent",
		"The message of this request is in the log of the conversation "+conversation+" already: the connection ended before its answer.",
		"Read the conversation over /api, or send the message again if the model is to read it twice.")
}

// start starts the turn of a request. OpenAI's clients repeat a request by themselves when its connection
// breaks or their time is over. They count that in a header, and such a repetition does not send its
// message a second time. The caller must drop the message, whose memory is free for others, and call abandon
// or answered when the response is complete.
func (o openAI) start(w http.ResponseWriter, r *http.Request, s turnRequest) (*turn, error) {
	key, count := "", r.Header.Get("X-Stainless-Retry-Count")
	if len(s.message) > 0 && len(s.answers)+len(s.returned) == 0 {
		key = r.Body.(*requestBody).key
	}
	conversation := o.h.sent.Find(key)
	if count == "" || count == "0" {
		o.h.sent.Remove(key, conversation)
		conversation = ""
	}
	t, err := (*turn)(nil), alreadySent(conversation)
	if conversation == "" {
		t, err = o.h.startTurn(r.Context(), s)
	}
	if err != nil && s.fork != "" {
		err = errors.Join(err, o.h.store.Delete(context.WithoutCancel(r.Context()), s.fork, history.AnyLength))
	}
	if err == nil || errors.Is(err, errMayBeStored) { // OpenAI's clients would send the message again
		w.Header().Set("X-Should-Retry", "false")
	}
	if err != nil {
		return nil, err
	}
	t.key = key
	o.h.sent.Add(key, t.conversation)
	r.Body.(*requestBody).keep(0)
	w.Header().Set("Consort-Conversation", t.conversation)
	return t, nil
}
