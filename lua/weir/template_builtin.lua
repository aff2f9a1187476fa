--- Chat templates for files that have none, by the names that people know these formats by.
-- @module weir.template_builtin
local texts = {}

texts.chatml = [[
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\n' }}
{%- endif %}]]

-- What llama2, mistral and gemma share: no turn of the system; its text goes before the first of the user's.
local system_first = [[
{%- set system = '' %}
{%- if messages and messages[0].role == 'system' %}
{%- set system = SYSTEM %}
{%- set messages = messages[1:] %}
{%- endif %}
{%- for message in messages %}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{%- endif %}
{%- set content = (system if loop.first else '') + message.content | trim %}
TURN
{%- endfor %}
END]]

local function with_system(system, turn, ending)
  local parts = {SYSTEM = system, TURN = turn, END = ending or ""}
  return (system_first:gsub("%u%u%u+", parts))
end

texts.llama2 = with_system("'<<SYS>>\\n' + messages[0].content + '\\n<</SYS>>\\n\\n'", [[
{%- if message.role == 'user' %}
{{- bos_token + '[INST] ' + content + ' [/INST]' }}
{%- else %}
{{- ' ' + content + ' ' + eos_token }}
{%- endif %}]])

texts.mistral = with_system("messages[0].content + '\\n\\n'", [[
{%- if loop.first %}
{{- bos_token }}
{%- endif %}
{%- if message.role == 'user' %}
{{- '[INST] ' + content + ' [/INST]' }}
{%- else %}
{{- ' ' + content + eos_token }}
{%- endif %}]])

texts.gemma = with_system("messages[0].content | trim + '\\n\\n'", [[
{%- if loop.first %}
{{- bos_token }}
{%- endif %}
{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' + content + '<end_of_turn>\n' }}]], [[
{%- if add_generation_prompt %}
{{- '<start_of_turn>model\n' }}
{%- endif %}]])

texts.llama3 = [[
{{- bos_token }}
{%- for message in messages %}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}]]

return {texts = texts, names = {"chatml", "llama2", "llama3", "mistral", "gemma"}}
