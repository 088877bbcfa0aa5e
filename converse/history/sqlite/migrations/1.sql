-- A conversation, as history.Info tells of it. Times are nanoseconds since 1970.
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

-- The canisters. seq is the order in which they arrived, and never given twice.
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

-- Long contents, each once: the line of a User with nothing but it.
CREATE TABLE contents (
	key  INTEGER PRIMARY KEY,
	hash BLOB    NOT NULL UNIQUE, -- SHA-256 of the body
	body TEXT    NOT NULL
) STRICT;

-- Which long content stands at which place of the contents of a canister.
CREATE TABLE parts (
	conversation INTEGER NOT NULL,
	position     INTEGER NOT NULL,
	place        INTEGER NOT NULL,
	content      INTEGER NOT NULL, -- contents.key
	PRIMARY KEY (conversation, position, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX parts_content ON parts (content);

-- What a search looks at, in lower case; the rowid is canisters.seq. All
-- canisters up to the seq in indexed are in it.
CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'trigram case_sensitive 1');
-- Texts that would take too long to index are not in it; a search reads the
-- conversations that have one.
CREATE TABLE unindexed (conversation INTEGER PRIMARY KEY) STRICT;
CREATE TABLE indexed (upto INTEGER NOT NULL) STRICT;
INSERT INTO indexed VALUES (0);
