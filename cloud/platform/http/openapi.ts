import type { z } from 'zod'
import { ErrorBody } from '../../../protocol/contract/errors.ts'
import { errorsOf } from '../../../protocol/contract/errors.ts'
import { rateClasses, type Auth, type Route } from '../../../protocol/contract/route.ts'
import type { RouteId } from '../../../protocol/contract/routes.ts'
import { errorCodes, errorStatus, type ErrorCode } from '../../../protocol/model/error-codes.ts'
import { exampleOf } from './example.ts'
import { schemaWriter, type JsonSchema, type SchemaWriter } from './json-schema.ts'
import { formBody } from './openapi-form.ts'

export const SERVICE_NAME = 'Larder'
export const SERVICE_VERSION = '0.1.0'

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

/** The OpenAPI document of the routes that are served. Paths are spelled as documented (contract §1). */
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
        'Automated retail hubs: the owner’s and integrator’s interface below `/api/v1`, the consumer’s below `/api/v1` and `/` alike. Amounts are integer cents; times are ISO 8601 in UTC. A trailing slash is accepted and ignored everywhere.',
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
  const { requests } = rateClasses[route.rate]
  const parameters = [
    ...parametersOf('path', route.params, writer),
    ...parametersOf('query', route.query, writer),
    ...(route.idempotent ? [idempotencyKey] : []),
  ]
  const mediaType = route.produces ?? 'application/json'
  const isJson = mediaType === 'application/json' && route.status !== 204
  const schema = isJson ? writer.write(route.response) : { type: 'string' }
  const success = {
    description: 'Success',
    ...(route.status !== 204 && {
      content: {
        [mediaType]: {
          schema: mediaType === 'application/octet-stream' ? { ...schema, format: 'binary' } : schema,
          ...(isJson && {
            example: route.examples?.response ?? exampleOf(schema, writer.components),
          }),
        },
      },
    }),
  }
  return {
    operationId: id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    ...(route.deprecated && { deprecated: true }),
    security: securityOf(route.auth),
    ...(parameters.length > 0 && { parameters }),
    ...(route.form && { requestBody: formBody(route.form, route.examples?.body, writer) }),
    ...(route.body && {
      requestBody: {
        required: !route.bodyOptional,
        content: {
          'application/json': {
            schema: writer.write(route.body),
            ...(route.examples?.body !== undefined && { example: route.examples.body }),
          },
        },
      },
    }),
    responses: {
      ...Object.fromEntries(
        [route.status ?? 200, route.alsoStatus ?? []].flat().map((status) => [status, success]),
      ),
      ...errorResponses(route),
    },
    ...('scope' in route.auth && { 'x-required-scope': route.auth.scope }),
    ...(requests !== Infinity && { 'x-requests-per-minute': requests }),
    'x-error-codes': errorsOf(route),
  }
}

function parametersOf(place: 'path' | 'query', schema: z.ZodObject | undefined, writer: SchemaWriter) {
  return Object.entries(schema?.shape ?? {}).map(([name, field]) => ({
    name,
    in: place,
    required: place === 'path' || !(field as z.ZodType).safeParse(undefined).success,
    schema: writer.write(field as z.ZodType),
  }))
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  description: 'The same request with the same key within 24 h is answered as the first was.',
}

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

/** Grouped by status. `hardware_error` has two (contract §2). */
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
