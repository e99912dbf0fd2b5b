import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { timestamp } from '../calendar/timestamps.ts'
import { reply, type Handlers } from './handler.ts'
import { schemaText, type JsonSchema } from './json-schema.ts'
import { SERVICE_NAME, SERVICE_VERSION, type OpenApiDocument, type Operation } from './openapi.ts'

/**
 * What the service says of itself: its name, its OpenAPI document, and that document as a page. Both are made when they are
 * first asked for: a start does not wait for them.
 */
export function rootHandlers(
  clock: Clock,
  describe: () => OpenApiDocument,
): Handlers<'root.index' | 'root.openapi' | 'root.docs'> {
  let kept: OpenApiDocument | undefined
  let page: string | undefined
  const document = (): OpenApiDocument => (kept ??= describe())
  return {
    'root.index': () =>
      Promise.resolve({
        service: SERVICE_NAME.toLowerCase(),
        version: SERVICE_VERSION,
        status: 'ok',
        time: timestamp(clock.now()),
      }),
    'root.openapi': () => Promise.resolve({ ...document() }),
    'root.docs': async () => {
      page ??= (await docsPage(document())).toString()
      return reply(page, { headers: { 'Content-Security-Policy': docsPolicy } })
    },
  }
}

const docsStyle = `
:root { color-scheme: light dark; --line: #8884; --quiet: #888; --accent: #2a7d5f; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem 1.5rem 4rem; }
h1 { margin-bottom: 0; } h2 { border-bottom: 1px solid var(--line); margin-top: 2.5rem; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: #8881; overflow: auto; padding: .6rem .8rem; border-radius: 6px; }
nav a { margin-right: 1rem; } a { color: var(--accent); }
input { font: inherit; width: 100%; padding: .4rem .6rem; box-sizing: border-box; margin: 1rem 0; }
details.op { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; }
details.op > summary { cursor: pointer; padding: .45rem .7rem; display: flex; gap: .7rem; align-items: baseline; flex-wrap: wrap; }
details.op > div { padding: 0 .9rem .8rem; border-top: 1px solid var(--line); }
.method { font-weight: 700; min-width: 3.6rem; color: var(--accent); }
.quiet { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; }
tr + tr td { border-top: 1px solid var(--line); }
[hidden] { display: none !important; }
`

const docsScript = `
const filter = document.getElementById('filter')
filter.addEventListener('input', () => {
  const words = filter.value.toLowerCase().split(/\\s+/)
  for (const op of document.querySelectorAll('.op'))
    op.hidden = !words.every((word) => op.dataset.text.includes(word))
})
const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (target && target.tagName === 'DETAILS') target.open = true
}
addEventListener('hashchange', reveal)
reveal()
`

const hashSource = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The page needs nothing but itself. */
const docsPolicy = [
  "default-src 'none'",
  `script-src ${hashSource(docsScript)}`,
  `style-src ${hashSource(docsStyle)}`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

type Html = ReturnType<typeof html>

interface Listed {
  method: string
  path: string
  operation: Operation
}

/** The OpenAPI document as one page that loads nothing, and can be read without its script. */
function docsPage({ info, tags, paths, components }: OpenApiDocument): Html {
  const listed = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([key]) => key !== 'servers')
      .map(([method, operation]): Listed => ({ method, path, operation: operation as Operation })),
  )
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${info.title} API</title>
        <link rel="icon" href="data:," />
        ${raw(`<style>${docsStyle}</style>`)}
      </head>
      <body>
        <h1>${info.title}</h1>
        <p class="quiet">version ${info.version} · <a href="/openapi.json">openapi.json</a></p>
        <p>${prose(info.description)}</p>
        <nav>
          ${tags.map(({ name }) => html`<a href="#${name}">${name}</a>`)}
          <a href="#Schemas">Schemas</a>
        </nav>
        <input
          id="filter"
          type="search"
          placeholder="Filter by path, word, scope or error"
          aria-label="Filter"
        />
        <main>
          ${tags.map(
            ({ name }) =>
              html`<h2 id="${name}">${name}</h2>
                ${listed.filter(({ operation }) => operation.tags.includes(name)).map(viewOperation)}`,
          )}
          <h2 id="Schemas">Schemas</h2>
          ${Object.entries(components.schemas).map(
            ([name, schema]) =>
              html`<details class="op" id="schema-${name}" data-text="${name.toLowerCase()}">
                <summary><code>${name}</code></summary>
                <div>${viewSchema(schema)}</div>
              </details>`,
          )}
        </main>
        ${raw(`<script>${docsScript}</script>`)}
      </body>
    </html>`
}

function viewOperation({ method, path, operation }: Listed): Html {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  const words = [method, path, summary, operation['x-required-scope'] ?? '', ...operation['x-error-codes']]
  const [answers, errors] = [true, false].map((good) =>
    Object.entries(responses).filter(([status]) => status < '300' === good),
  )
  return html`<details class="op" id="${operationId}" data-text="${words.join(' ').toLowerCase()}">
    <summary>
      <span class="method">${method.toUpperCase()}</span> <code>${path}</code>
      <span class="quiet">${summary}</span>
    </summary>
    <div>
      ${description && html`<p>${prose(description)}</p>`}
      <p class="quiet">${credentialOf(operation)}</p>
      ${parameters && parameterTable(parameters)} ${requestBody && viewContent('Body', requestBody.content)}
      ${answers!.map(([status, { content }]) => viewContent(`Answer ${status}`, content ?? {}))}
      <h4>Errors</h4>
      <table>
        ${errors!.map(
          ([status, { description: lines }]) =>
            html`<tr>
              <td>${status}</td>
              <td>${lines.split('\n\n').map(viewError)}</td>
            </tr>`,
        )}
      </table>
    </div>
  </details>`
}

function credentialOf(operation: Operation): string {
  const names = operation.security.map((scheme) => Object.keys(scheme)[0] ?? 'nothing')
  const words = { apiKey: 'X-API-Key', identityToken: 'Authorization: Bearer', nothing: 'no credential' }
  const credential = names.map((name) => words[name as keyof typeof words]).join(' or ') || 'No credential'
  const scope = operation['x-required-scope']
  const limit = operation['x-requests-per-minute']
  return [credential, scope && `scope ${scope}`, limit && `${limit} requests a minute`]
    .filter(Boolean)
    .join(' · ')
}

const parameterTable = (parameters: NonNullable<Operation['parameters']>): Html =>
  html`<h4>Parameters</h4>
    <table>
      ${parameters.map(
        ({ name, in: place, required, schema, description }) =>
          html`<tr>
            <td><code>${name}</code></td>
            <td class="quiet">${place}${required ? ', required' : ''}</td>
            <td><code>${schemaText(schema)}</code> ${description}</td>
          </tr>`,
      )}
    </table>`

const viewContent = (
  title: string,
  content: Record<string, { schema: JsonSchema; example?: unknown }>,
): Html[] =>
  Object.values(content).map(
    ({ schema, example }) =>
      html`<h4>${title}</h4>
        ${viewSchema(schema)} ${example !== undefined && html`<pre>${JSON.stringify(example, null, 2)}</pre>`}`,
  )

const viewError = (line: string): Html => {
  const [, code = '', message = ''] = /^`(\w+)`: (.*)$/.exec(line) ?? []
  return html`<div><code>${code}</code> <span class="quiet">${message}</span></div>`
}

/** Text with `code` in backticks. */
const prose = (text: string): Html[] =>
  text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))

const viewSchema = (schema: JsonSchema): Html => {
  const references = JSON.stringify(schema).matchAll(/#\/components\/schemas\/(\w+)/g)
  const names = new Set([...references].map(([, name]) => name))
  return html`<pre>${schemaText(schema)}</pre>
    ${[...names].map((name) => html`<a href="#schema-${name}">${name}</a> `)}`
}
