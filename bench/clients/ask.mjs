// One of the JavaScript clients, asked over stdin: a JSON object a line, and one back.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const [name, folder] = process.argv.slice(2)
const { resolve } = createRequire(`${folder}/package.json`)
const load = async (packageName) => import(pathToFileURL(resolve(packageName)))
const { default: OpenAI } = await load('openai')
const { generateText, streamText } = await load('ai')
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible')
const { createOpenAI } = await load('@ai-sdk/openai')

const textOf = (response) => {
  if (response.error) throw new Error(response.error.message)
  return response.output.flatMap((item) => item.content ?? []).map((part) => part.text ?? '').join('')
}

const openai = async (ask) => {
  const client = new OpenAI({ baseURL: ask.base, apiKey: ask.key, ...(ask.seconds && { timeout: ask.seconds * 1000 }) })
  if (ask.door === 'chat') {
    const messages = [{ role: 'user', content: ask.text }]
    const answer = await client.chat.completions.create({ model: 'everloop', messages, stream: ask.stream })
    if (!ask.stream) return answer.choices[0].message.content
    let said = ''
    for await (const chunk of answer) said += chunk.choices[0]?.delta.content ?? ''
    return said
  }
  const answer = await client.responses.create({ model: 'everloop', input: ask.text, stream: ask.stream })
  if (!ask.stream) return textOf(answer)
  let said = ''
  for await (const event of answer) if (/^response\.(completed|failed)$/.test(event.type)) said = textOf(event.response)
  return said
}

const withModel = async (model, ask) => {
  const wish = { model, prompt: ask.text, ...(ask.seconds && { abortSignal: AbortSignal.timeout(ask.seconds * 1000) }) }
  if (!ask.stream) return (await generateText(wish)).text
  let said = '', broken = null
  const answer = streamText({ ...wish, onError: ({ error }) => { broken ??= error } })
  for await (const part of answer.fullStream) {
    if (part.type === 'text-delta') said += part.text
    if (part.type === 'error') broken ??= part.error
    if (part.type === 'abort') broken ??= new Error('aborted')
  }
  if (broken) throw broken
  return said
}

const compatible = (ask) =>
  withModel(createOpenAICompatible({ name: 'everloop', baseURL: ask.base, apiKey: ask.key })('everloop'), ask)

const sdk = (ask) => withModel(createOpenAI({ baseURL: ask.base, apiKey: ask.key })[ask.door]('everloop'), ask)

const clients = { openai, compatible, sdk }
const wordsOf = (error) => `${error?.name ?? 'Error'}: ${error?.message ?? JSON.stringify(error)}`

for await (const line of createInterface({ input: process.stdin })) {
  let told
  try {
    told = { said: await clients[name](JSON.parse(line)) }
  } catch (error) {
    told = { error: wordsOf(error) }
  }
  console.log(JSON.stringify(told))
}
