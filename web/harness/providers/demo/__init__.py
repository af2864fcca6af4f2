"""The provider of `demo:demo`: scripted answers, no key and no network.

What a person may write (`help` says it too):

    /TOOL {json}  |  /TOOL key=value ...  |  /TOOL words     call any tool of the chat
    plain words that name a tool or what it does             the same
    ... then ...                                             one call after the other; {result} is
                                                             the text of the last result
    parallel: /a ... ; /b ...                                several calls in one answer, also in
                                                             plain words
    long 2000 [fast | slow | at 20 tokens a second]          an answer of that many words
    think ... | show markdown | fail | fail once | refuse | empty
"""
