import type { z } from 'zod'
import { errorHelp } from '../../../protocol/contract/error-help.ts'
import { ErrorBody, errorsOf } from '../../../protocol/contract/errors.ts'
import { KIB, MIB, totalBytesOf, type FileField, type Form } from '../../../protocol/contract/form.ts'
import { headersOf, headerText } from '../../../protocol/contract/headers.ts'
import { mountsOf, rateClasses, ratesOf, type Auth, type Route } from '../../../protocol/contract/route.ts'
import { type RouteId, audienceOf, audiences, tagText } from '../../../protocol/contract/routes.ts'
import { errorStatus, type ErrorCode } from '../../../protocol/model/error-codes.ts'
import { testCards } from '../../../protocol/model/test-cards.ts'
import { VERSION } from '../../../protocol/model/build-time.ts'
import { mediaTypes } from '../media/media-type.ts'
import { addressUnder } from '../public-url.ts'
import {
  exampleOf,
  nameOf,
  named,
  nameParts,
  schemaWriter,
  sentenceOf,
  type JsonSchema,
  type SchemaWriter,
} from './json-schema.ts'
import { IdempotencyKey } from './validate.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { timestamp } from '../calendar/days.ts'
import { JsonText } from '../store/json.ts'
import { etagOf } from './web.ts'
import { reply, type Handlers } from './handler.ts'

const SERVICE_NAME = 'Larder'
const SERVICE_VERSION = VERSION

/** An operation in the document and on its page. Fields with the prefix `x-` are ours. */
export interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  deprecated?: true
  security: Record<string, string[]>[]
  parameters?: { name: string; in: string; required: boolean; schema: JsonSchema; description: string }[]
  requestBody?: {
    required: boolean
    content: Record<string, { schema: JsonSchema; encoding?: JsonSchema; example?: unknown }>
  }
  responses: Record<
    string,
    {
      description: string
      headers: Record<string, JsonSchema>
      content?: Record<string, { schema: JsonSchema; example?: unknown }>
    }
  >
  'x-required-scope'?: string
  'x-requests-per-minute'?: number
  'x-error-codes': string[]
  /** The same endpoint at its second path. */
  'x-same-as'?: string
}

export interface OpenApiDocument {
  openapi: '3.1.0'
  info: {
    title: string
    version: string
    description: string
    contact: { name: string; url: string }
    license: { name: string; identifier: string }
  }
  servers: { url: string; description?: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, unknown>>
  components: {
    schemas: Record<string, JsonSchema>
    headers: Record<string, JsonSchema>
    securitySchemes: Record<string, JsonSchema>
  }
}

const words = `Automated retail hubs: stock, orders, payments and hardware.

- **Owner API**: owners and integrators call below \`/api/v1\`, with an API key. **Customer API**: apps and pages of customers call below \`/api/v1\` or \`/\`, with an identity token. A trailing slash is ignored everywhere.
- An address may lead to several installations (cells), at \`/c1\` and so on. The first digits of a hub's number are its cell: \`700000001\` belongs to cell 7, and numbers below 100,000,000 to cell 0, which has no such path. A customer has an account of their own in each cell. An API key reaches its cell with any address.
- Amounts are integer cents. Times are ISO 8601 in UTC. Ids are whole numbers up to 2^53 − 1. Text contains neither NUL nor half a surrogate pair.
- Card numbers are never sent to this service. If no card processor is configured, the sandbox takes Stripe's test cards as payment methods:
${Object.entries(testCards)
  .map(([card, does]) => `    - \`${card}\` ${does}`)
  .join('\n')}`

/** The OpenAPI document of the served routes. Paths are spelled as documented. */
export function openApiDocument(baseUrl: string, routes: Partial<Record<RouteId, Route>>): OpenApiDocument {
  const writer = schemaWriter()
  const paths: OpenApiDocument['paths'] = {}
  for (const [id, route] of Object.entries<Route>(routes)) {
    const first = operation(id, route, writer)
    for (const [index, path] of mountsOf(route).entries()) {
      const same = { ...first, operationId: `${id}.at_root`, 'x-same-as': id }
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: index === 0 ? first : same }
    }
  }
  writer.write(ErrorBody)
  nameParts(writer.components)
  return {
    openapi: '3.1.0',
    info: {
      title: SERVICE_NAME,
      version: SERVICE_VERSION,
      contact: { name: 'The operator of this installation', url: baseUrl },
      license: { name: 'All rights reserved', identifier: 'LicenseRef-All-rights-reserved' },
      description: words,
    },
    servers: [{ url: addressUnder(baseUrl, '') }],
    tags: [
      ...Object.entries(audiences).map(([name, description]) => ({ name, description })),
      ...[...new Set(Object.values(routes).map(({ tag }) => tag))]
        .filter((name) => !(name in audiences))
        .map((name) => ({ name, description: tagText[name] ?? name })),
    ],
    paths,
    components: {
      schemas: writer.components,
      headers: Object.fromEntries(
        Object.entries(headerText).map(([name, description]) => [
          name,
          { description, schema: { type: 'string' } },
        ]),
      ),
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        identityToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
      },
    },
  }
}

function operation(id: string, route: Route, writer: SchemaWriter): Operation {
  const { auth, form, body, examples } = route
  const { requests } = rateClasses[ratesOf(route)[0]]
  const parameters = [
    ...parametersOf('path', route.params, writer),
    ...parametersOf('query', route.query, writer),
    ...(route.idempotent ? [idempotencyKey(writer)] : []),
  ]
  return {
    operationId: id,
    tags: [...new Set([audienceOf(route), route.tag])],
    summary: route.summary,
    description: [route.description ?? '', accessOf(route), limitOf(route)].join(' ').trim(),
    ...(route.deprecated && { deprecated: true }),
    security: securityOf(auth),
    ...(parameters.length > 0 && { parameters }),
    ...(form && { requestBody: formBody(id, route, form, writer) }),
    ...(body && {
      requestBody: {
        required: !route.bodyOptional,
        content: {
          'application/json': {
            schema: named(
              `${nameOf(id)}Body`,
              writer.request(body),
              writer.components,
              `Body of ${callOf(route)}.`,
            ),
            ...exampleIn(examples?.body),
          },
        },
      },
    }),
    responses: {
      ...Object.fromEntries(
        [route.status ?? 200, route.alsoStatus ?? []]
          .flat()
          .map((status) => [status, successOf(id, route, status, writer)]),
      ),
      ...(route.validated && {
        304: {
          description: 'Nothing has changed since the answer with this `ETag`.',
          headers: headersIn(route, 200),
        },
      }),
      ...errorResponses(route),
    },
    ...('scope' in auth && { 'x-required-scope': auth.scope }),
    ...(requests !== Infinity && { 'x-requests-per-minute': requests }),
    'x-error-codes': errorsOf(route),
  }
}

const exampleIn = (example: unknown): { example?: unknown } => (example === undefined ? {} : { example })

/** The rate limit, and the calls that it counts. */
function limitOf(route: Route): string {
  const { requests, by } = rateClasses[ratesOf(route)[0]]
  if (requests === Infinity) return 'Calls are not limited.'
  const counted =
    by === 'address' ? 'each network (IPv4 address or IPv6 /64), whatever the credential' : 'each credential'
  return `Limit: ${requests} requests a minute for ${counted}.`
}

/** The credential that the endpoint needs. */
function accessOf(route: Route): string {
  const credential = {
    api: 'Takes an API key, or an identity token with a role',
    diag: 'Takes an API key, or the identity token of an administrator',
    user: 'Takes the identity token of a customer',
    identity: 'Takes any identity token',
    'optional-identity': 'Takes an identity token, or none',
    none: 'Takes no credential',
  }[route.auth.kind]
  return 'scope' in route.auth ? `${credential}, with the scope \`${route.auth.scope}\`.` : `${credential}.`
}

const callOf = (route: Route): string => `\`${route.method} ${mountsOf(route)[0]}\``

const headersIn = (route: Route, status: number): Record<string, JsonSchema> =>
  Object.fromEntries(headersOf(route, status).map((name) => [name, { $ref: `#/components/headers/${name}` }]))

function successOf(
  id: string,
  route: Route,
  status: number,
  writer: SchemaWriter,
): Operation['responses'][string] {
  const description = `Success: ${route.summary}.`
  const headers = headersIn(route, status)
  if (route.status === 204) return { description, headers }
  const { produces } = route
  if (produces !== undefined) {
    const format = produces === 'application/octet-stream' && { format: 'binary' }
    return { description, headers, content: { [produces]: { schema: { type: 'string', ...format } } } }
  }
  const { components } = writer
  const written = writer.write(route.response)
  const schema = named(`${nameOf(id)}Answer`, written, components, `Answer of ${callOf(route)}.`)
  const example = route.examples?.response ?? exampleOf(schema, writer.components)
  const other = route.alsoProduces && { [route.alsoProduces]: { schema: { type: 'string' } } }
  return { description, headers, content: { 'application/json': { schema, example }, ...other } }
}

function parametersOf(place: 'path' | 'query', schema: z.ZodObject | undefined, writer: SchemaWriter) {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const written = writer.request(field as z.ZodType)
    const { description: _, ...bare } = written
    return {
      name,
      in: place,
      required: place === 'path' || !(field as z.ZodType).safeParse(undefined).success,
      schema: bare,
      description: sentenceOf(written, writer.components) ?? '',
    }
  })
}

const idempotencyKey = (writer: SchemaWriter) => ({
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: writer.write(IdempotencyKey),
  description:
    'Key of the caller, at most 255 characters. A request with the same key within 24 h is executed once, and each repetition gets the first answer. If it is left out: each request is executed.',
})

function securityOf(auth: Auth): Operation['security'] {
  switch (auth.kind) {
    case 'api':
    case 'diag':
      return [{ apiKey: [] }, { identityToken: [] }]
    case 'user':
    case 'identity':
      return [{ identityToken: [] }]
    case 'optional-identity':
      return [{}, { identityToken: [] }]
    case 'none':
      return []
  }
}

/** Grouped by status. `hardware_error` has two. */
function errorResponses(route: Route): Operation['responses'] {
  const codes = errorsOf(route)
  const statusesOf = (code: ErrorCode) =>
    code === 'hardware_error'
      ? [errorStatus(code), errorStatus(code, { reason: 'timeout' })]
      : [errorStatus(code)]
  const statuses = [...new Set(codes.flatMap(statusesOf))]
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: codes
          .filter((code) => statusesOf(code).includes(status))
          .map((code) => `- \`${code}\`: ${errorHelp[code].cause}`)
          .join('\n'),
        headers: headersIn(route, status),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorBody' } } },
      },
    ]),
  )
}

/** A multipart form in the OpenAPI document. Its files are binary strings, its JSON fields objects. */
function formBody(id: string, route: Route, form: Form, writer: SchemaWriter) {
  const fields = writer.request(form.fields)
  const files = Object.entries(form.files)
  const required = [
    ...((fields['required'] as string[] | undefined) ?? []),
    ...files.filter(([, field]) => field.required).map(([name]) => name),
  ]
  const schema: JsonSchema = {
    ...fields,
    properties: {
      ...(fields['properties'] as JsonSchema),
      ...Object.fromEntries(files.map(([name, field]) => [name, fileSchema(field)])),
    },
    ...(required.length > 0 && { required }),
    description: `Form of ${callOf(route)}. All files together: at most ${size(totalBytesOf(form))}.`,
  }
  const encoding = Object.fromEntries(
    files.map(([name, field]) => [name, { contentType: typesOf(field).join(', ') }]),
  )
  return {
    required: required.length > 0,
    content: {
      'multipart/form-data': {
        schema: named(`${nameOf(id)}Form`, schema, writer.components),
        encoding,
        ...exampleIn(withFiles(form, route.examples?.body)),
      },
    },
  }
}

/** An example of a form, with its files. */
const withFiles = (form: Form, example: unknown): unknown =>
  example === undefined
    ? undefined
    : {
        ...(example as object),
        ...Object.fromEntries(
          Object.entries(form.files)
            .filter(([, { required }]) => required)
            .map(([name]) => [name, '(the bytes of the file)']),
        ),
      }

function fileSchema(field: FileField): JsonSchema {
  const { maxFiles = 1 } = field
  const limits = [
    field.imageBytes !== undefined && `images up to ${size(field.imageBytes)}`,
    field.videoBytes !== undefined && `videos up to ${size(field.videoBytes)}`,
  ]
  const file = { type: 'string', format: 'binary' }
  const optional = field.required ? '' : ' If it is left out: no file.'
  const description = `By content, not by name: ${limits.filter(Boolean).join(', ')}.${optional}`
  return maxFiles === 1
    ? { ...file, description }
    : { type: 'array', items: file, maxItems: maxFiles, description }
}

const typesOf = (field: FileField): string[] =>
  mediaTypes
    .filter(({ kind }) => (kind === 'image' ? field.imageBytes : field.videoBytes) !== undefined)
    .map(({ mimeType }) => mimeType)

const size = (bytes: number): string => (bytes >= MIB ? `${bytes / MIB} MiB` : `${bytes / KIB} KiB`)

/**
 * The service's name and its OpenAPI document. The document is built at its first request, so that it does not delay
 * the start.
 */
export function descriptionHandlers(
  clock: Clock,
  describe: () => OpenApiDocument,
): Handlers<'root.index' | 'root.openapi'> {
  const text = once(() => {
    const json = JSON.stringify(describe())
    return reply(new JsonText<Record<string, unknown>>(json), { headers: { ETag: etagOf(json) } })
  })
  return {
    'root.index': () =>
      Promise.resolve({
        service: SERVICE_NAME.toLowerCase(),
        version: SERVICE_VERSION,
        status: 'ok',
        time: timestamp(clock.now()),
      }),
    'root.openapi': () => Promise.resolve(text()),
  }
}

function once<T>(make: () => T): () => T {
  let kept: { value: T } | undefined
  return () => (kept ??= { value: make() }).value
}
