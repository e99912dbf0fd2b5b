import type { z } from 'zod'
import { ErrorBody, errorsOf } from '../../../protocol/contract/errors.ts'
import { KIB, MIB, totalBytesOf, type FileField, type Form } from '../../../protocol/contract/form.ts'
import { rateClasses, ratesOf, type Auth, type Route } from '../../../protocol/contract/route.ts'
import type { RouteId } from '../../../protocol/contract/routes.ts'
import { errorCodes, errorStatus, type ErrorCode } from '../../../protocol/model/error-codes.ts'
import { VERSION } from '../../../protocol/model/version.ts'
import { mediaTypes } from '../media/media-type.ts'
import { exampleOf, schemaWriter, type JsonSchema, type SchemaWriter } from './json-schema.ts'
import { IdempotencyKey } from './validate.ts'

export const SERVICE_NAME = 'Larder'
export const SERVICE_VERSION = VERSION

/** One operation as the document and its page show it. The fields beginning with `x-` are ours. */
export interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  deprecated?: true
  security: Record<string, string[]>[]
  parameters?: { name: string; in: string; required: boolean; schema: JsonSchema; description?: string }[]
  requestBody?: {
    required: boolean
    content: Record<string, { schema: JsonSchema; encoding?: JsonSchema; example?: unknown }>
  }
  responses: Record<
    string,
    { description: string; content?: Record<string, { schema: JsonSchema; example?: unknown }> }
  >
  'x-required-scope'?: string
  'x-requests-per-minute'?: number
  'x-error-codes': string[]
}

export interface OpenApiDocument {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string }
  servers: { url: string; description?: string }[]
  tags: { name: string }[]
  paths: Record<string, Record<string, unknown>>
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, JsonSchema> }
}

/** The OpenAPI document of the routes that are served. Paths are spelled as documented. */
export function openApiDocument(baseUrl: string, routes: Partial<Record<RouteId, Route>>): OpenApiDocument {
  const writer = schemaWriter()
  const paths: OpenApiDocument['paths'] = {}
  for (const [id, route] of Object.entries<Route>(routes)) {
    const path = route.interface === 'owner' ? `/api/v1${route.path}` : route.path
    const both = route.interface === 'consumer' || route.interface === 'diag'
    paths[path] = {
      ...(both && { servers: [{ url: baseUrl }, { url: `${baseUrl}/api/v1` }] }),
      ...paths[path],
      [route.method.toLowerCase()]: operation(id, route, writer),
    }
  }
  writer.write(ErrorBody)
  return {
    openapi: '3.1.0',
    info: {
      title: SERVICE_NAME,
      version: SERVICE_VERSION,
      description:
        'Automated retail hubs: the owner’s and integrator’s interface below `/api/v1`, the consumer’s below `/api/v1` and `/` alike. Amounts are integer cents; times are ISO 8601 in UTC. A trailing slash is accepted and ignored everywhere. The sandbox, where no other card processor is set, takes Stripe’s test cards as payment methods: `pm_card_visa`, `pm_card_mastercard` and `pm_card_amex` pay, `pm_card_chargeDeclined` is declined, `pm_card_authenticationRequired` pays once it is confirmed, `pm_card_refundFail` refuses its refunds, those of `pm_card_pendingRefund` and payments with `pm_usBankAccount` take a moment. Numbers of cards are never sent here.',
    },
    servers: [{ url: baseUrl }],
    tags: [...new Set(Object.values(routes).map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: writer.components,
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
  const success = successOf(route, writer)
  return {
    operationId: id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    ...(route.deprecated && { deprecated: true }),
    security: securityOf(auth),
    ...(parameters.length > 0 && { parameters }),
    ...(form && { requestBody: formBody(form, examples?.body, writer) }),
    ...(body && {
      requestBody: {
        required: !route.bodyOptional,
        content: { 'application/json': { schema: writer.write(body), ...exampleIn(examples?.body) } },
      },
    }),
    responses: {
      ...Object.fromEntries(
        [route.status ?? 200, route.alsoStatus ?? []].flat().map((status) => [status, success]),
      ),
      ...errorResponses(route),
    },
    ...('scope' in auth && { 'x-required-scope': auth.scope }),
    ...(requests !== Infinity && { 'x-requests-per-minute': requests }),
    'x-error-codes': errorsOf(route),
  }
}

const exampleIn = (example: unknown): { example?: unknown } => (example === undefined ? {} : { example })

function successOf(route: Route, writer: SchemaWriter): Operation['responses'][string] {
  const description = 'Success'
  if (route.status === 204) return { description }
  const { produces } = route
  if (produces !== undefined) {
    const format = produces === 'application/octet-stream' && { format: 'binary' }
    return { description, content: { [produces]: { schema: { type: 'string', ...format } } } }
  }
  const schema = writer.write(route.response)
  const example = route.examples?.response ?? exampleOf(schema, writer.components)
  return { description, content: { 'application/json': { schema, example } } }
}

function parametersOf(place: 'path' | 'query', schema: z.ZodObject | undefined, writer: SchemaWriter) {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => ({
    name,
    in: place,
    required: place === 'path' || !(field as z.ZodType).safeParse(undefined).success,
    schema: writer.write(field as z.ZodType),
  }))
}

const idempotencyKey = (writer: SchemaWriter) => ({
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: writer.write(IdempotencyKey),
  description: 'The same request with the same key within 24 h is answered as the first was.',
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
          .map((code) => `\`${code}\`: ${errorCodes[code].message}`)
          .join('\n\n'),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorBody' } } },
      },
    ]),
  )
}

/** A multipart form in the OpenAPI document: its files are binary strings, its JSON fields objects. */
function formBody(form: Form, example: unknown, writer: SchemaWriter) {
  const fields = writer.write(form.fields)
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
    description: `All files together: at most ${size(totalBytesOf(form))}.`,
  }
  const encoding = Object.fromEntries(
    files.map(([name, field]) => [name, { contentType: typesOf(field).join(', ') }]),
  )
  return {
    required: required.length > 0,
    content: { 'multipart/form-data': { schema, encoding, ...exampleIn(example) } },
  }
}

function fileSchema(field: FileField): JsonSchema {
  const { maxFiles = 1 } = field
  const limits = [
    field.imageBytes !== undefined && `images up to ${size(field.imageBytes)}`,
    field.videoBytes !== undefined && `videos up to ${size(field.videoBytes)}`,
  ]
  const file = { type: 'string', format: 'binary' }
  const description = `By content, not by name: ${limits.filter(Boolean).join(', ')}.`
  return maxFiles === 1
    ? { ...file, description }
    : { type: 'array', items: file, maxItems: maxFiles, description }
}

const typesOf = (field: FileField): string[] =>
  mediaTypes
    .filter(({ kind }) => (kind === 'image' ? field.imageBytes : field.videoBytes) !== undefined)
    .map(({ mimeType }) => mimeType)

const size = (bytes: number): string => (bytes >= MIB ? `${bytes / MIB} MiB` : `${bytes / KIB} KiB`)
