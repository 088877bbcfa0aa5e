-- The version of these tables: the number of the last file of this kind.
CREATE TABLE @.consort_layout (version integer NOT NULL);

-- A conversation, as history.Info tells of it. An append changes no column that
-- has an index, so that it writes the row alone.
CREATE TABLE @.conversations (
	key           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id            text    COLLATE "C" NOT NULL UNIQUE,
	title         text    NOT NULL,
	folded        text    NOT NULL, -- the title as a search compares it
	tags          text[]  NOT NULL, -- sorted
	owner         text    COLLATE "C" NOT NULL,
	created       timestamptz NOT NULL,
	changed       timestamptz NOT NULL,
	length        integer NOT NULL, -- canisters
	last          text    NOT NULL, -- the kind of the last one
	parent        text    NOT NULL,
	parent_length integer NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX conversations_owner ON @.conversations (owner);

-- The canisters.
CREATE TABLE @.canisters (
	conversation bigint  NOT NULL,
	position     integer NOT NULL, -- from 0
	id           bytea   NOT NULL, -- may be any bytes
	kind         text    NOT NULL,
	line         text    NOT NULL, -- the JSON form, without the long contents
	folded       text    NOT NULL, -- its text as a search compares it
	parts        integer NOT NULL, -- how many long contents there are
	size         integer NOT NULL, -- bytes of the line and the long contents
	sum          bigint  NOT NULL, -- CRC-32C of all that
	PRIMARY KEY (conversation, position)
);

-- Long contents, each once: the line of a User with nothing but it.
CREATE TABLE @.contents (
	key    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	hash   bytea  NOT NULL UNIQUE, -- SHA-256 of the body
	body   text   NOT NULL,
	folded text   NOT NULL
);

-- Which long content stands at which place of the contents of a canister.
CREATE TABLE @.parts (
	conversation bigint  NOT NULL,
	position     integer NOT NULL,
	place        integer NOT NULL,
	content      bigint  NOT NULL, -- contents.key
	PRIMARY KEY (conversation, position, place)
);
CREATE INDEX parts_content ON @.parts (content);
