PRAGMA journal_mode = wal;
PRAGMA application_id = 128299021;
PRAGMA user_version = 3;
BEGIN;
CREATE TABLE conversations (
	key           INTEGER PRIMARY KEY AUTOINCREMENT,
	id            TEXT    NOT NULL UNIQUE,
	title         TEXT    NOT NULL,
	folded        TEXT    NOT NULL, -- the title as a search compares it
	tags          TEXT    NOT NULL, -- a JSON list, sorted
	owner         TEXT    NOT NULL,
	created       INTEGER NOT NULL,
	changed       INTEGER NOT NULL,
	length        INTEGER NOT NULL, -- canisters
	last          TEXT    NOT NULL, -- the kind of the last one
	parent        TEXT    NOT NULL,
	parent_length INTEGER NOT NULL
) STRICT;
CREATE TABLE canisters (
	seq          INTEGER PRIMARY KEY AUTOINCREMENT,
	conversation INTEGER NOT NULL,
	position     INTEGER NOT NULL, -- from 0
	id           TEXT    NOT NULL,
	kind         TEXT    NOT NULL,
	line         TEXT    NOT NULL, -- the JSON form, without the long contents
	parts        INTEGER NOT NULL, -- how many long contents there are
	size         INTEGER NOT NULL, -- bytes of the line and the long contents
	sum          INTEGER NOT NULL, -- CRC-32C: see the function sum
	UNIQUE (conversation, position)
) STRICT;
CREATE TABLE contents (
	key  INTEGER PRIMARY KEY,
	hash BLOB    NOT NULL UNIQUE, -- SHA-256 of the body
	body TEXT    NOT NULL
) STRICT;
CREATE TABLE parts (
	conversation INTEGER NOT NULL,
	position     INTEGER NOT NULL,
	place        INTEGER NOT NULL,
	content      INTEGER NOT NULL, -- contents.key
	PRIMARY KEY (conversation, position, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX parts_content ON parts (content);
CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'trigram case_sensitive 1');
CREATE TABLE unindexed (conversation INTEGER PRIMARY KEY) STRICT;
CREATE TABLE indexed (upto INTEGER NOT NULL) STRICT;
CREATE TABLE accounts (
	name     TEXT    NOT NULL PRIMARY KEY,
	spent    INTEGER NOT NULL,
	reserved INTEGER NOT NULL, -- the sum over reservations
	ends     INTEGER           -- NULL is never
) STRICT, WITHOUT ROWID;
CREATE INDEX accounts_ends ON accounts (ends) WHERE ends IS NOT NULL;
CREATE TABLE reservations (
	id      TEXT    NOT NULL,
	account TEXT    NOT NULL,
	amount  INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	PRIMARY KEY (id, account)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_expires ON reservations (expires);
CREATE TABLE logins (
	name    TEXT    NOT NULL PRIMARY KEY,
	version INTEGER NOT NULL, -- grows with each change
	sealed  BLOB    NOT NULL, -- empty: there is none
	holder  TEXT    NOT NULL  -- who changes it now; empty: nobody
) STRICT, WITHOUT ROWID;
DELETE FROM conversations;
INSERT INTO conversations VALUES (1, 'Pläne', 'Plans', 'plans', '["a","b"]', 'Plans', 1795432944683599891, 1795432944689827898, 32, 'intent', '', 0);
INSERT INTO conversations VALUES (2, 'fork', 'Plans', 'plans', '["a","b"]', 'Plans', 1795432944693100106, 1795432944693100106, 32, 'intent', 'Pläne', 32);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES ('conversations', 2);
INSERT INTO sqlite_sequence VALUES ('canisters', 64);
DELETE FROM canisters;
INSERT INTO canisters VALUES (1, 1, 0, 'd1', 'document', '{"kind":"document","id":"d1"}', 1, 1167, 1639387381);
INSERT INTO canisters VALUES (2, 1, 1, '', 'user', '{"kind":"user"}', 0, 15, 1149190613);
INSERT INTO canisters VALUES (3, 1, 2, 's1', 'supervisor', '{"kind":"supervisor","id":"s1","time":"2026-03-01T09:30:00Z","content":[{"type":"text","text":"Answer in one sentence."}]}', 0, 122, 1809648842);
INSERT INTO canisters VALUES (4, 1, 3, 'd1', 'document', '{"kind":"document","id":"d1","time":"2026-03-01T09:30:00.1Z","title":"Terms","uri":"file:///terms.txt","content":[{"type":"text","text":"1. Be kind."}]}', 0, 152, 810127394);
INSERT INTO canisters VALUES (5, 1, 4, 'u1', 'user', '{"kind":"user","id":"u1","time":"2026-03-01T09:30:00.000001Z","content":[{"type":"text","text":"What should I wear in Oslo? <b>& \"\\/\b\f\n\r\t\u0000 é 漢 🌧"},{"type":"text","metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"text","text":{"base64":"dG9ybiD//g=="}},{"type":"image","mime":"image/png","data":"AAEC/w=="},{"type":"image","url":"https://example.com/sky.png?a=1&b=2","metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"audio","mime":"audio/wav","data":"","metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}}]}', 0, 635, 2254183659);
INSERT INTO canisters VALUES (6, 1, 5, 'a1', 'assistant', '{"kind":"assistant","id":"a1","time":"2026-03-01T09:30:00.000000001Z","model":"m-1","finish":"invocations","usage":{"input":812,"cached":512,"output":64,"reasoning":12}}', 0, 169, 3365675073);
INSERT INTO canisters VALUES (7, 1, 6, 'i1', 'invocation', '{"kind":"invocation","id":"i1","time":"2026-03-01T09:30:00.000000001Z","message":"a1","call_id":"call_1","name":"local__weather","arguments":"{\"place\": \"Oslo\",  \"days\":1e2}"}', 0, 180, 3846846914);
INSERT INTO canisters VALUES (8, 1, 7, 'i2', 'invocation', '{"kind":"invocation","id":"i2","time":"2026-03-01T09:30:00.000000001Z","message":"a1","call_id":"call_2","name":{"base64":"bG9jYWxfX8Mo"},"arguments":"{\"place\": "}', 0, 165, 552135466);
INSERT INTO canisters VALUES (9, 1, 8, 'r1', 'result', '{"kind":"result","id":"r1","time":"2026-03-01T09:30:00.123456789Z","invocation":"i1","content":[{"type":"resource","uri":"file:///a","mime":"text/plain","text":"a","metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"resource","uri":"file:///b"},{"type":"resource","uri":"file:///c","mime":"application/pdf","blob":"JVBERg=="},{"type":"resource","uri":"file:///d","blob":""},{"type":"link","uri":"file:///e","name":"e","title":"E","description":"the letter","mime":"text/plain","size":0,"metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"link","uri":"file:///f"},{"type":"structured","json":{"degrees":12.50,"wet":true,"next":[null,1e400]},"metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"structured","json":null}],"metadata":{"took":123456789012345678901234567890e-3}}', 0, 886, 397053086);
INSERT INTO canisters VALUES (10, 1, 9, 'r2', 'result', '{"kind":"result","id":"r2","time":"2026-03-01T09:30:00.000000002Z","invocation":"i2","content":[{"type":"text","text":"The arguments are not JSON."}],"code":"INVALID_ARGUMENTS","retryable":true}', 0, 194, 2297600787);
INSERT INTO canisters VALUES (11, 1, 10, 'a2', 'assistant', '{"kind":"assistant","id":"a2","time":"2026-03-01T09:30:00Z","content":[{"type":"text","text":"A raincoat."}],"finish":"vendor_reason","usage":{"audio":7,"cost":0.0021},"thought":null}', 0, 183, 599794185);
INSERT INTO canisters VALUES (12, 1, 11, 'u1', 'user', '{"kind":"user","id":"u1","time":"2026-11-21T18:00:00Z","content":[{"type":"text","text":"Pay Ada."}]}', 0, 101, 758498570);
INSERT INTO canisters VALUES (13, 1, 12, 'a1', 'assistant', '{"kind":"assistant","id":"a1","time":"2026-11-21T18:00:01Z","finish":"invocations"}', 0, 83, 2101716772);
INSERT INTO canisters VALUES (14, 1, 13, 'i1', 'invocation', '{"kind":"invocation","id":"i1","time":"2026-11-21T18:00:01Z","message":"a1","call_id":"call_i1","name":"bank__pay","arguments":"{\"to\":\"Ada\"}"}', 0, 146, 4108805113);
INSERT INTO canisters VALUES (15, 1, 14, 'i2', 'invocation', '{"kind":"invocation","id":"i2","time":"2026-11-21T18:00:01Z","message":"a1","call_id":"call_i2","name":"bank__balance","arguments":"{\"to\":\"Ada\"}"}', 0, 150, 2800372299);
INSERT INTO canisters VALUES (16, 1, 15, 'i3', 'invocation', '{"kind":"invocation","id":"i3","time":"2026-11-21T18:00:01Z","message":"a1","call_id":"call_i3","name":"bank__form","arguments":"{\"to\":\"Ada\"}"}', 0, 147, 2923215434);
INSERT INTO canisters VALUES (17, 1, 16, 't2', 'intent', '{"kind":"intent","v":2,"id":"t2","time":"2026-11-21T18:00:02Z","invocation":"i2","attempt":1,"key":"i2","repeatable":true}', 0, 122, 2093987986);
INSERT INTO canisters VALUES (18, 1, 17, 'w1', 'wait', '{"kind":"wait","v":2,"id":"w1","time":"2026-11-21T18:00:02Z","for":"approval","invocation":"i1","deadline":"2026-11-22T18:00:00.000000005Z","who":"ada","conversation":"talk","identity":"sha256:9f86","fingerprint":"sha256:d081","arguments":"{\"to\":\"Ada\"}"}', 0, 258, 2725176625);
INSERT INTO canisters VALUES (19, 1, 18, 'r2', 'result', '{"kind":"result","id":"r2","time":"2026-11-21T18:00:03Z","invocation":"i2","content":[{"type":"text","text":"12"}]}', 0, 115, 2894946403);
INSERT INTO canisters VALUES (20, 1, 19, 'w3', 'wait', '{"kind":"wait","v":2,"id":"w3","time":"2026-11-21T18:00:03Z","for":"elicitation","invocation":"i3","deadline":"2026-11-22T18:00:00.000000005Z","question":{"message":"Which account?"},"metadata":{"a":[1]},"mood":"calm"}', 0, 218, 474853145);
INSERT INTO canisters VALUES (21, 1, 20, 'n1', 'answer', '{"kind":"answer","v":2,"id":"n1","time":"2026-11-21T18:00:04Z","wait":"w1","verdict":"change","by":"ada","reason":"less","arguments":{"to":"Ada","sum":1.50},"metadata":{"a":[1]},"mood":"calm"}', 0, 192, 1030877240);
INSERT INTO canisters VALUES (22, 1, 21, 't1', 'intent', '{"kind":"intent","v":2,"id":"t1","time":"2026-11-21T18:00:05Z","invocation":"i1","attempt":2,"key":"i1","wait":"w1","arguments":"{\"to\":\"Ada\",\"sum\":1.50}","metadata":{"a":[1]},"mood":"calm"}', 0, 195, 369554841);
INSERT INTO canisters VALUES (23, 1, 22, 'w4', 'wait', '{"kind":"wait","v":2,"id":"w4","time":"2026-11-21T18:00:06Z","for":"outcome","invocation":"i1","deadline":"2026-11-22T18:00:00.000000005Z"}', 0, 139, 3789028968);
INSERT INTO canisters VALUES (24, 1, 23, 'n4', 'answer', '{"kind":"answer","v":2,"id":"n4","time":"2026-11-21T18:00:07Z","wait":"w4","verdict":"done","by":"ada","content":[{"type":"text","text":"It was paid."}]}', 0, 153, 925578666);
INSERT INTO canisters VALUES (25, 1, 24, 'n3', 'answer', '{"kind":"answer","v":2,"id":"n3","time":"2026-11-21T18:00:07Z","wait":"w3","verdict":"decline","by":"ada"}', 0, 106, 45677322);
INSERT INTO canisters VALUES (26, 1, 25, 'r3', 'result', '{"kind":"result","id":"r3","time":"2026-11-21T18:00:08Z","invocation":"i3","content":[{"type":"text","text":"The person declined."}],"code":"DENIED"}', 0, 149, 4071794615);
INSERT INTO canisters VALUES (27, 1, 26, 'r1', 'result', '{"kind":"result","id":"r1","time":"2026-11-21T18:00:09Z","invocation":"i1","content":[{"type":"text","text":"It was paid."}]}', 0, 125, 2573669020);
INSERT INTO canisters VALUES (28, 1, 27, 'w5', 'wait', '{"kind":"wait","v":2,"id":"w5","time":"2026-11-21T18:00:10Z","for":"timer","deadline":"2026-11-22T18:00:00.000000005Z"}', 0, 119, 247329045);
INSERT INTO canisters VALUES (29, 1, 28, '', 'intent', '{"kind":"intent","v":2}', 0, 23, 2076721394);
INSERT INTO canisters VALUES (30, 1, 29, '', 'wait', '{"kind":"wait","v":2}', 0, 21, 1150961176);
INSERT INTO canisters VALUES (31, 1, 30, '', 'answer', '{"kind":"answer","v":2}', 0, 23, 1092325842);
INSERT INTO canisters VALUES (32, 1, 31, 't6', 'intent', '{"kind":"intent","v":2,"id":"t6","time":"2026-11-21T18:00:11Z","invocation":"i6","attempt":1,"key":"i6","approved":"2026-11-22T18:00:00.000000005Z","identity":"sha256:9f86","fingerprint":"sha256:d081"}', 0, 201, 2516371603);
INSERT INTO canisters VALUES (33, 2, 0, 'd1', 'document', '{"kind":"document","id":"d1"}', 1, 1167, 1639387381);
INSERT INTO canisters VALUES (34, 2, 1, '', 'user', '{"kind":"user"}', 0, 15, 1149190613);
INSERT INTO canisters VALUES (35, 2, 2, 's1', 'supervisor', '{"kind":"supervisor","id":"s1","time":"2026-03-01T09:30:00Z","content":[{"type":"text","text":"Answer in one sentence."}]}', 0, 122, 1809648842);
INSERT INTO canisters VALUES (36, 2, 3, 'd1', 'document', '{"kind":"document","id":"d1","time":"2026-03-01T09:30:00.1Z","title":"Terms","uri":"file:///terms.txt","content":[{"type":"text","text":"1. Be kind."}]}', 0, 152, 810127394);
INSERT INTO canisters VALUES (37, 2, 4, 'u1', 'user', '{"kind":"user","id":"u1","time":"2026-03-01T09:30:00.000001Z","content":[{"type":"text","text":"What should I wear in Oslo? <b>& \"\\/\b\f\n\r\t\u0000 é 漢 🌧"},{"type":"text","metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"text","text":{"base64":"dG9ybiD//g=="}},{"type":"image","mime":"image/png","data":"AAEC/w=="},{"type":"image","url":"https://example.com/sky.png?a=1&b=2","metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"audio","mime":"audio/wav","data":"","metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}}]}', 0, 635, 2254183659);
INSERT INTO canisters VALUES (38, 2, 5, 'a1', 'assistant', '{"kind":"assistant","id":"a1","time":"2026-03-01T09:30:00.000000001Z","model":"m-1","finish":"invocations","usage":{"input":812,"cached":512,"output":64,"reasoning":12}}', 0, 169, 3365675073);
INSERT INTO canisters VALUES (39, 2, 6, 'i1', 'invocation', '{"kind":"invocation","id":"i1","time":"2026-03-01T09:30:00.000000001Z","message":"a1","call_id":"call_1","name":"local__weather","arguments":"{\"place\": \"Oslo\",  \"days\":1e2}"}', 0, 180, 3846846914);
INSERT INTO canisters VALUES (40, 2, 7, 'i2', 'invocation', '{"kind":"invocation","id":"i2","time":"2026-03-01T09:30:00.000000001Z","message":"a1","call_id":"call_2","name":{"base64":"bG9jYWxfX8Mo"},"arguments":"{\"place\": "}', 0, 165, 552135466);
INSERT INTO canisters VALUES (41, 2, 8, 'r1', 'result', '{"kind":"result","id":"r1","time":"2026-03-01T09:30:00.123456789Z","invocation":"i1","content":[{"type":"resource","uri":"file:///a","mime":"text/plain","text":"a","metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"resource","uri":"file:///b"},{"type":"resource","uri":"file:///c","mime":"application/pdf","blob":"JVBERg=="},{"type":"resource","uri":"file:///d","blob":""},{"type":"link","uri":"file:///e","name":"e","title":"E","description":"the letter","mime":"text/plain","size":0,"metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"link","uri":"file:///f"},{"type":"structured","json":{"degrees":12.50,"wet":true,"next":[null,1e400]},"metadata":{"a":{"z":0.10,"y":"<&>"},"b":1},"annotations":{"audience":["user"]}},{"type":"structured","json":null}],"metadata":{"took":123456789012345678901234567890e-3}}', 0, 886, 397053086);
INSERT INTO canisters VALUES (42, 2, 9, 'r2', 'result', '{"kind":"result","id":"r2","time":"2026-03-01T09:30:00.000000002Z","invocation":"i2","content":[{"type":"text","text":"The arguments are not JSON."}],"code":"INVALID_ARGUMENTS","retryable":true}', 0, 194, 2297600787);
INSERT INTO canisters VALUES (43, 2, 10, 'a2', 'assistant', '{"kind":"assistant","id":"a2","time":"2026-03-01T09:30:00Z","content":[{"type":"text","text":"A raincoat."}],"finish":"vendor_reason","usage":{"audio":7,"cost":0.0021},"thought":null}', 0, 183, 599794185);
INSERT INTO canisters VALUES (44, 2, 11, 'u1', 'user', '{"kind":"user","id":"u1","time":"2026-11-21T18:00:00Z","content":[{"type":"text","text":"Pay Ada."}]}', 0, 101, 758498570);
INSERT INTO canisters VALUES (45, 2, 12, 'a1', 'assistant', '{"kind":"assistant","id":"a1","time":"2026-11-21T18:00:01Z","finish":"invocations"}', 0, 83, 2101716772);
INSERT INTO canisters VALUES (46, 2, 13, 'i1', 'invocation', '{"kind":"invocation","id":"i1","time":"2026-11-21T18:00:01Z","message":"a1","call_id":"call_i1","name":"bank__pay","arguments":"{\"to\":\"Ada\"}"}', 0, 146, 4108805113);
INSERT INTO canisters VALUES (47, 2, 14, 'i2', 'invocation', '{"kind":"invocation","id":"i2","time":"2026-11-21T18:00:01Z","message":"a1","call_id":"call_i2","name":"bank__balance","arguments":"{\"to\":\"Ada\"}"}', 0, 150, 2800372299);
INSERT INTO canisters VALUES (48, 2, 15, 'i3', 'invocation', '{"kind":"invocation","id":"i3","time":"2026-11-21T18:00:01Z","message":"a1","call_id":"call_i3","name":"bank__form","arguments":"{\"to\":\"Ada\"}"}', 0, 147, 2923215434);
INSERT INTO canisters VALUES (49, 2, 16, 't2', 'intent', '{"kind":"intent","v":2,"id":"t2","time":"2026-11-21T18:00:02Z","invocation":"i2","attempt":1,"key":"i2","repeatable":true}', 0, 122, 2093987986);
INSERT INTO canisters VALUES (50, 2, 17, 'w1', 'wait', '{"kind":"wait","v":2,"id":"w1","time":"2026-11-21T18:00:02Z","for":"approval","invocation":"i1","deadline":"2026-11-22T18:00:00.000000005Z","who":"ada","conversation":"talk","identity":"sha256:9f86","fingerprint":"sha256:d081","arguments":"{\"to\":\"Ada\"}"}', 0, 258, 2725176625);
INSERT INTO canisters VALUES (51, 2, 18, 'r2', 'result', '{"kind":"result","id":"r2","time":"2026-11-21T18:00:03Z","invocation":"i2","content":[{"type":"text","text":"12"}]}', 0, 115, 2894946403);
INSERT INTO canisters VALUES (52, 2, 19, 'w3', 'wait', '{"kind":"wait","v":2,"id":"w3","time":"2026-11-21T18:00:03Z","for":"elicitation","invocation":"i3","deadline":"2026-11-22T18:00:00.000000005Z","question":{"message":"Which account?"},"metadata":{"a":[1]},"mood":"calm"}', 0, 218, 474853145);
INSERT INTO canisters VALUES (53, 2, 20, 'n1', 'answer', '{"kind":"answer","v":2,"id":"n1","time":"2026-11-21T18:00:04Z","wait":"w1","verdict":"change","by":"ada","reason":"less","arguments":{"to":"Ada","sum":1.50},"metadata":{"a":[1]},"mood":"calm"}', 0, 192, 1030877240);
INSERT INTO canisters VALUES (54, 2, 21, 't1', 'intent', '{"kind":"intent","v":2,"id":"t1","time":"2026-11-21T18:00:05Z","invocation":"i1","attempt":2,"key":"i1","wait":"w1","arguments":"{\"to\":\"Ada\",\"sum\":1.50}","metadata":{"a":[1]},"mood":"calm"}', 0, 195, 369554841);
INSERT INTO canisters VALUES (55, 2, 22, 'w4', 'wait', '{"kind":"wait","v":2,"id":"w4","time":"2026-11-21T18:00:06Z","for":"outcome","invocation":"i1","deadline":"2026-11-22T18:00:00.000000005Z"}', 0, 139, 3789028968);
INSERT INTO canisters VALUES (56, 2, 23, 'n4', 'answer', '{"kind":"answer","v":2,"id":"n4","time":"2026-11-21T18:00:07Z","wait":"w4","verdict":"done","by":"ada","content":[{"type":"text","text":"It was paid."}]}', 0, 153, 925578666);
INSERT INTO canisters VALUES (57, 2, 24, 'n3', 'answer', '{"kind":"answer","v":2,"id":"n3","time":"2026-11-21T18:00:07Z","wait":"w3","verdict":"decline","by":"ada"}', 0, 106, 45677322);
INSERT INTO canisters VALUES (58, 2, 25, 'r3', 'result', '{"kind":"result","id":"r3","time":"2026-11-21T18:00:08Z","invocation":"i3","content":[{"type":"text","text":"The person declined."}],"code":"DENIED"}', 0, 149, 4071794615);
INSERT INTO canisters VALUES (59, 2, 26, 'r1', 'result', '{"kind":"result","id":"r1","time":"2026-11-21T18:00:09Z","invocation":"i1","content":[{"type":"text","text":"It was paid."}]}', 0, 125, 2573669020);
INSERT INTO canisters VALUES (60, 2, 27, 'w5', 'wait', '{"kind":"wait","v":2,"id":"w5","time":"2026-11-21T18:00:10Z","for":"timer","deadline":"2026-11-22T18:00:00.000000005Z"}', 0, 119, 247329045);
INSERT INTO canisters VALUES (61, 2, 28, '', 'intent', '{"kind":"intent","v":2}', 0, 23, 2076721394);
INSERT INTO canisters VALUES (62, 2, 29, '', 'wait', '{"kind":"wait","v":2}', 0, 21, 1150961176);
INSERT INTO canisters VALUES (63, 2, 30, '', 'answer', '{"kind":"answer","v":2}', 0, 23, 1092325842);
INSERT INTO canisters VALUES (64, 2, 31, 't6', 'intent', '{"kind":"intent","v":2,"id":"t6","time":"2026-11-21T18:00:11Z","invocation":"i6","attempt":1,"key":"i6","approved":"2026-11-22T18:00:00.000000005Z","identity":"sha256:9f86","fingerprint":"sha256:d081"}', 0, 201, 2516371603);
DELETE FROM contents;
INSERT INTO contents VALUES (1, X'516108447A9C578DA1DB7F049F51A9D844DD1FCAB933B682A2FAB9F6743C891E', '{"kind":"user","content":[{"type":"text","text":"Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. Read this. "}]}');
DELETE FROM parts;
INSERT INTO parts VALUES (1, 0, 0, 1);
INSERT INTO parts VALUES (2, 0, 0, 1);
DELETE FROM texts_data;
INSERT INTO texts_data VALUES (1, X'');
INSERT INTO texts_data VALUES (10, X'00000000FF000001000000');
DELETE FROM texts_idx;
DELETE FROM texts_docsize;
DELETE FROM texts_config;
INSERT INTO texts_config VALUES ('version', 4);
DELETE FROM unindexed;
DELETE FROM indexed;
INSERT INTO indexed VALUES (0);
DELETE FROM accounts;
DELETE FROM reservations;
DELETE FROM logins;
COMMIT;
