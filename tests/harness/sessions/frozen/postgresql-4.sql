CREATE TABLE public.harness_answers (
    run_id text NOT NULL,
    number bigint NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    body text NOT NULL,
    token text NOT NULL
);
CREATE TABLE public.harness_blobs (
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    session_id text NOT NULL,
    sha256 text NOT NULL,
    media_type text NOT NULL,
    kept_at double precision NOT NULL,
    size bigint NOT NULL,
    data bytea NOT NULL
);
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
CREATE TABLE public.harness_executions (
    run_id text NOT NULL,
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    session_id text NOT NULL,
    request_id text NOT NULL,
    digest text NOT NULL,
    body text NOT NULL,
    status text NOT NULL,
    fence bigint NOT NULL,
    state text,
    steps bigint NOT NULL,
    replaced bigint NOT NULL,
    answered bigint NOT NULL,
    result_status text NOT NULL,
    created_at double precision NOT NULL,
    changed_at double precision NOT NULL
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
CREATE TABLE public.harness_records (
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    session_id text NOT NULL,
    place double precision NOT NULL,
    deleted_at double precision,
    body text NOT NULL
);
CREATE TABLE public.harness_run_pictures (
    run_id text NOT NULL,
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
CREATE TABLE public.harness_steps (
    run_id text NOT NULL,
    number bigint NOT NULL,
    happened_at double precision NOT NULL,
    cursor bigint NOT NULL,
    kind text NOT NULL,
    body text NOT NULL,
    added text
);
INSERT INTO public.harness_answers VALUES ('going', 1, 'decision', 'k', '{"decision":"allow"}', '7fc46c5e25644a418eda963ea8049fe3');
INSERT INTO public.harness_blobs VALUES ('here', 'ann', 's', '2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97', 'image/png', 1796029062.031693, 7, '\x70696374757265');
INSERT INTO public.harness_conversations VALUES (1, 'sub');
INSERT INTO public.harness_events VALUES ('r', 2, 12.5, '{"type":"text_delta","text":"ab","message_id":"m"}', '\x0100000002000000');
INSERT INTO public.harness_events VALUES ('r', 3, 12.5, '{"type":"run_result","status":"completed","text":"ab","usage":{}}', NULL);
INSERT INTO public.harness_events VALUES ('going', 1, 12.5, '{"type":"text_delta","text":"a","message_id":"m"}', NULL);
INSERT INTO public.harness_executions VALUES ('going', 'here', 'ann', 's', 'q', '59c818e2bb110c9e5959079c51d21c2742b32575d18f20616cddffbf582697f9', '{"v":1,"run_id":"going","identity":{"tenant_id":"here","user_id":"ann"},"session_id":"s","request_id":"q","text":"hello","attachments":[{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7},{"type":"resource","uri":"file:a","name":"a","media_type":"text/plain","text":"a text \u0000 \ud800","source":"server","file_bytes":3}],"fitting":{"model":"demo:demo"},"about":{"chat":[1,null]}}', 'running', 1, '{"v":1,"run_id":"r","limits":{"max_iterations":10,"max_cost_dollars":null,"max_parallel_tools":2,"attempts":3,"backoff_seconds":0.5,"max_backoff_seconds":8.0,"max_repeats":null},"phase":"model","message_count":0,"last_role":"user","calls":[],"iterations":4,"attempt":1,"delay":0.0,"usage":{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"thinking_tokens":0},"cost":null,"last_round":"","repeats":0,"cancelling":"","ending":null,"condensing":null,"squeezes":0,"summaries_off":false,"grants":[],"resumes":0}', 5, 0, 3, '', 1796029062.042245, 1796029062.076903);
INSERT INTO public.harness_executions VALUES ('ended', 'here', 'ann', 's', 'q2', '59c818e2bb110c9e5959079c51d21c2742b32575d18f20616cddffbf582697f9', '{"v":1,"run_id":"ended","identity":{"tenant_id":"here","user_id":"ann"},"session_id":"s","request_id":"q2","text":"hello","attachments":[{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7},{"type":"resource","uri":"file:a","name":"a","media_type":"text/plain","text":"a text \u0000 \ud800","source":"server","file_bytes":3}],"fitting":{"model":"demo:demo"},"about":{"chat":[1,null]}}', 'ended', 1, NULL, 1, 0, 0, 'completed', 1796029062.09821, 1796029062.139974);
INSERT INTO public.harness_leases VALUES ('here', 'ann', 's', '', 1796029061956, 0);
INSERT INTO public.harness_messages VALUES (1, '', 0, '{"v":1,"id":"u","role":"user","content":[{"type":"text","text":"hello 日"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]}');
INSERT INTO public.harness_messages VALUES (1, '', 1, '{"v":1,"id":"a","role":"assistant","parent_id":"u","content":[{"type":"tool_use","id":"c","name":"t","arguments":{"x":[1]}}]}');
INSERT INTO public.harness_messages VALUES (1, '', 2, '{"v":1,"id":"t","role":"tool","parent_id":"a","content":[{"type":"tool_result","call_id":"c","content":[{"type":"text","text":"done"}]}]}');
INSERT INTO public.harness_messages VALUES (1, 'sub', 0, '{"v":1,"id":"x","role":"user","content":[{"type":"text","text":"inner"}]}');
INSERT INTO public.harness_pictures VALUES (1, '2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97', '\x70696374757265');
INSERT INTO public.harness_records VALUES ('here', 'ann', 's', 1.5, NULL, '{"title":"Hello"}');
INSERT INTO public.harness_run_pictures VALUES ('going', '2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97', '\x70696374757265');
INSERT INTO public.harness_run_pictures VALUES ('ended', '2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97', '\x70696374757265');
INSERT INTO public.harness_runs VALUES ('r', 3, 1, 1, 0, '5ba7459e192d4f3caa9a30cbc94ec646');
INSERT INTO public.harness_runs VALUES ('going', 1, 0, 0, 0, '05cf32b582194c9eaa2a1acac1bdc546');
INSERT INTO public.harness_runs VALUES ('ended', 0, 0, 0, 0, '56a4c72b8f0048cc996b78a75ef2b05a');
INSERT INTO public.harness_schema VALUES (1, 1796029061.892038);
INSERT INTO public.harness_schema VALUES (2, 1796029061.903374);
INSERT INTO public.harness_schema VALUES (3, 1796029061.915395);
INSERT INTO public.harness_schema VALUES (4, 1796029061.940901);
INSERT INTO public.harness_sessions OVERRIDING SYSTEM VALUE VALUES (1, 'here', 'ann', 's', 1, 0, 'ef269fbd505b4831b968730ed3dbf0e9', 1796029061.969382);
INSERT INTO public.harness_states VALUES (1, '{"n":1}');
INSERT INTO public.harness_steps VALUES ('going', 1, 12.5, 1, 'begun', '{"v":1,"kind":"begun"}', '{"messages":[{"v":1,"id":"u","role":"user","content":[{"type":"text","text":"hello 日"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]}]}');
INSERT INTO public.harness_steps VALUES ('going', 2, 12.5, 1, 'model_call', '{"v":1,"kind":"model_call","about":{"model":"demo:demo","tokens":12,"seconds":1.5}}', NULL);
INSERT INTO public.harness_steps VALUES ('going', 3, 12.5, 1, 'answered', '{"v":1,"kind":"answered","outcome":{"type":"model_answered","size":9,"calls":[{"id":"c1","name":"look"}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2},"cost":0.5},"calls":[{"use":{"type":"tool_use","id":"c1","name":"look","arguments":{"at":[1,{"\u0000":"\ud800 \u65e5"}]}},"message_id":"a1","replay":"safe","approval":"k","decision":"allow","edited":true}]}', '{"messages":[{"v":1,"id":"a1","role":"assistant","content":[{"type":"thinking","text":"hm","signature":"seal"},{"type":"text","text":"let me"},{"type":"tool_use","id":"c1","name":"look","arguments":{"at":[1,{"\u0000":"\ud800 \u65e5"}]}}]}]}');
INSERT INTO public.harness_steps VALUES ('going', 4, 12.5, 1, 'calls_started', '{"v":1,"kind":"calls_started","outcome":{"type":"calls_started","call_ids":["c1"]},"calls":[{"use":{"type":"tool_use","id":"c1","name":"look","arguments":{"at":[1,{"\u0000":"\ud800 \u65e5"}]}},"message_id":"a1","replay":"safe","approval":"k","decision":"allow","edited":true}]}', NULL);
INSERT INTO public.harness_steps VALUES ('going', 5, 12.5, 1, 'call_settled', '{"v":1,"kind":"call_settled","outcome":{"type":"call_settled","call_id":"c1","size":7,"digest":"digest"},"calls":[{"use":{"type":"tool_use","id":"c1","name":"look","arguments":{"at":[1,{"\u0000":"\ud800 \u65e5"}]}},"message_id":"a1","replay":"safe","approval":"k","decision":"allow","edited":true,"result":{"type":"tool_result","call_id":"c1","content":[{"type":"text","text":"found 1"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]},"seconds":0.25}]}', '{"messages":[{"v":1,"id":"t1","role":"tool","content":[{"type":"tool_result","call_id":"c1","content":[{"type":"text","text":"found 1"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]}]}]}');
INSERT INTO public.harness_steps VALUES ('ended', 1, 12.5, 0, 'begun', '{"v":1,"kind":"begun"}', '{"messages":[{"v":1,"id":"u","role":"user","content":[{"type":"text","text":"hello 日"},{"type":"image","media_type":"image/png","sha256":"2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97","name":"p.png","width":4,"height":4,"kept":7}]}]}');
SELECT pg_catalog.setval('public.harness_sessions_id_seq', 1, true);
ALTER TABLE ONLY public.harness_answers
    ADD CONSTRAINT harness_answers_pkey PRIMARY KEY (run_id, number);
ALTER TABLE ONLY public.harness_answers
    ADD CONSTRAINT harness_answers_run_id_key_key UNIQUE (run_id, key);
ALTER TABLE ONLY public.harness_blobs
    ADD CONSTRAINT harness_blobs_pkey PRIMARY KEY (tenant_id, user_id, session_id, sha256);
ALTER TABLE ONLY public.harness_conversations
    ADD CONSTRAINT harness_conversations_pkey PRIMARY KEY (session, name);
ALTER TABLE ONLY public.harness_events
    ADD CONSTRAINT harness_events_pkey PRIMARY KEY (run_id, number);
ALTER TABLE ONLY public.harness_executions
    ADD CONSTRAINT harness_executions_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.harness_executions
    ADD CONSTRAINT harness_executions_tenant_id_user_id_session_id_request_id_key UNIQUE (tenant_id, user_id, session_id, request_id);
ALTER TABLE ONLY public.harness_leases
    ADD CONSTRAINT harness_leases_pkey PRIMARY KEY (tenant_id, user_id, session_id);
ALTER TABLE ONLY public.harness_messages
    ADD CONSTRAINT harness_messages_pkey PRIMARY KEY (session, conversation, "position");
ALTER TABLE ONLY public.harness_pictures
    ADD CONSTRAINT harness_pictures_pkey PRIMARY KEY (session, sha256);
ALTER TABLE ONLY public.harness_records
    ADD CONSTRAINT harness_records_pkey PRIMARY KEY (tenant_id, user_id, session_id);
ALTER TABLE ONLY public.harness_run_pictures
    ADD CONSTRAINT harness_run_pictures_pkey PRIMARY KEY (run_id, sha256);
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
ALTER TABLE ONLY public.harness_steps
    ADD CONSTRAINT harness_steps_pkey PRIMARY KEY (run_id, number);
CREATE INDEX harness_executions_unfinished ON public.harness_executions USING btree (created_at, run_id) WHERE (status <> 'ended'::text);
CREATE INDEX harness_records_by_place ON public.harness_records USING btree (tenant_id, user_id, place, session_id);
ALTER TABLE ONLY public.harness_conversations
    ADD CONSTRAINT harness_conversations_session_fkey FOREIGN KEY (session) REFERENCES public.harness_sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.harness_messages
    ADD CONSTRAINT harness_messages_session_fkey FOREIGN KEY (session) REFERENCES public.harness_sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.harness_pictures
    ADD CONSTRAINT harness_pictures_session_fkey FOREIGN KEY (session) REFERENCES public.harness_sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.harness_states
    ADD CONSTRAINT harness_states_session_fkey FOREIGN KEY (session) REFERENCES public.harness_sessions(id) ON DELETE CASCADE;
