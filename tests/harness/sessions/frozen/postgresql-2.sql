CREATE TABLE public.harness_conversations (
    session bigint NOT NULL,
    name text NOT NULL
);
CREATE TABLE public.harness_events (
    run_id text NOT NULL,
    number bigint NOT NULL,
    happened_at double precision NOT NULL,
    body text NOT NULL,
    ends bytea
);
CREATE TABLE public.harness_leases (
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    session_id text NOT NULL,
    holder text NOT NULL,
    fence bigint NOT NULL,
    expires_at double precision NOT NULL
);
CREATE TABLE public.harness_messages (
    session bigint NOT NULL,
    conversation text NOT NULL,
    "position" bigint NOT NULL,
    body text NOT NULL
);
CREATE TABLE public.harness_pictures (
    session bigint NOT NULL,
    sha256 text NOT NULL,
    data bytea NOT NULL
);
CREATE TABLE public.harness_runs (
    run_id text NOT NULL,
    last bigint NOT NULL,
    ended integer NOT NULL,
    joined integer NOT NULL,
    gap_before bigint NOT NULL,
    token text NOT NULL
);
CREATE TABLE public.harness_schema (
    version integer NOT NULL,
    applied_at double precision NOT NULL
);
CREATE TABLE public.harness_sessions (
    id bigint NOT NULL,
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    session_id text NOT NULL,
    revision bigint NOT NULL,
    replayable integer NOT NULL,
    token text NOT NULL,
    updated_at double precision NOT NULL
);
ALTER TABLE public.harness_sessions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.harness_sessions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.harness_states (
    session bigint NOT NULL,
    body text NOT NULL
);
INSERT INTO public.harness_conversations VALUES (1, 'sub');
INSERT INTO public.harness_events VALUES ('r', 2, 12.5, '{"type":"text_delta","text":"ab","message_id":"m"}', '\x0100000002000000');
INSERT INTO public.harness_events VALUES ('r', 3, 12.5, '{"type":"run_result","status":"completed","text":"ab","usage":{}}', NULL);
INSERT INTO public.harness_leases VALUES ('here', 'ann', 's', '', 1796019990953, 0);
INSERT INTO public.harness_messages VALUES (1, '', 0, '{"v":1,"id":"u","role":"user","content":[{"type":"text","text":"hello 日"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]}');
INSERT INTO public.harness_messages VALUES (1, '', 1, '{"v":1,"id":"a","role":"assistant","parent_id":"u","content":[{"type":"tool_use","id":"c","name":"t","arguments":{"x":[1]}}]}');
INSERT INTO public.harness_messages VALUES (1, '', 2, '{"v":1,"id":"t","role":"tool","parent_id":"a","content":[{"type":"tool_result","call_id":"c","content":[{"type":"text","text":"done"}]}]}');
INSERT INTO public.harness_messages VALUES (1, 'sub', 0, '{"v":1,"id":"x","role":"user","content":[{"type":"text","text":"inner"}]}');
INSERT INTO public.harness_pictures VALUES (1, '2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97', '\x70696374757265');
INSERT INTO public.harness_runs VALUES ('r', 3, 1, 1, 0, 'd46b7abf0aa0438ab0ae0f8b4730a74e');
INSERT INTO public.harness_schema VALUES (1, 1796019990.927018);
INSERT INTO public.harness_schema VALUES (2, 1796019990.946019);
INSERT INTO public.harness_sessions OVERRIDING SYSTEM VALUE VALUES (1, 'here', 'ann', 's', 1, 0, '4d3682535c244a20952586dfe5a234d1', 1796019990.966592);
INSERT INTO public.harness_states VALUES (1, '{"n":1}');
SELECT pg_catalog.setval('public.harness_sessions_id_seq', 1, true);
ALTER TABLE ONLY public.harness_conversations
    ADD CONSTRAINT harness_conversations_pkey PRIMARY KEY (session, name);
ALTER TABLE ONLY public.harness_events
    ADD CONSTRAINT harness_events_pkey PRIMARY KEY (run_id, number);
ALTER TABLE ONLY public.harness_leases
    ADD CONSTRAINT harness_leases_pkey PRIMARY KEY (tenant_id, user_id, session_id);
ALTER TABLE ONLY public.harness_messages
    ADD CONSTRAINT harness_messages_pkey PRIMARY KEY (session, conversation, "position");
ALTER TABLE ONLY public.harness_pictures
    ADD CONSTRAINT harness_pictures_pkey PRIMARY KEY (session, sha256);
ALTER TABLE ONLY public.harness_runs
    ADD CONSTRAINT harness_runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.harness_schema
    ADD CONSTRAINT harness_schema_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.harness_sessions
    ADD CONSTRAINT harness_sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.harness_sessions
    ADD CONSTRAINT harness_sessions_tenant_id_user_id_session_id_key UNIQUE (tenant_id, user_id, session_id);
ALTER TABLE ONLY public.harness_states
    ADD CONSTRAINT harness_states_pkey PRIMARY KEY (session);
ALTER TABLE ONLY public.harness_conversations
    ADD CONSTRAINT harness_conversations_session_fkey FOREIGN KEY (session) REFERENCES public.harness_sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.harness_messages
    ADD CONSTRAINT harness_messages_session_fkey FOREIGN KEY (session) REFERENCES public.harness_sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.harness_pictures
    ADD CONSTRAINT harness_pictures_session_fkey FOREIGN KEY (session) REFERENCES public.harness_sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.harness_states
    ADD CONSTRAINT harness_states_session_fkey FOREIGN KEY (session) REFERENCES public.harness_sessions(id) ON DELETE CASCADE;
