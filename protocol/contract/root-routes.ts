import { z } from 'zod'
import { Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

export const rootRoutes = defineRoutes(
  { interface: 'root', auth: { kind: 'none' }, rate: 'open', tag: 'Service' },
  {
    'root.index': {
      at: 'GET /',
      interface: 'consumer',
      response: z.object({
        service: z.string(),
        version: z.string(),
        status: z.literal('ok'),
        time: Timestamp,
      }),
      summary: 'Name, version and time of the service',
    },
    'root.openapi': {
      at: 'GET /openapi.json',
      validated: 'public',
      response: z.record(z.string(), z.unknown()),
      summary: 'This interface as an OpenAPI 3.1 document',
    },
    'root.docs': {
      at: 'GET /docs',
      response: z.string(),
      produces: 'text/html',
      summary: 'Guides and reference, to read and to try',
    },
    'root.docs.file': {
      at: 'GET /docs/{path}',
      openEnded: true,
      // A page is made of many.
      rate: 'unlimited',
      params: z.object({ path: z.string() }),
      response: z.instanceof(ReadableStream).nullable(),
      produces: 'application/octet-stream',
      errors: ['not_found'],
      summary: 'A script, style or picture of the documentation',
      description:
        'Names have a hash of what they hold, and are kept for ever. Calls are not limited, and answers say nothing of a limit.',
    },
    'root.webhooks.payments': {
      at: 'POST /webhooks/payments',
      rate: 'unlimited',
      rawBody: true,
      signedBy: ['Payment-Signature', 'Stripe-Signature'],
      response: z.object({ received: z.literal(true) }),
      errors: ['invalid_signature', 'invalid_json'],
      tag: 'Payments',
      summary: "The card processor's events",
      description:
        'Signed: header `Payment-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`, within 300 s; the header may as well be called `Stripe-Signature`. Without it the body is not read. An event is applied once, by its id; a repeated one is answered as the first. Calls are not limited, and answers say nothing of a limit.',
    },
  },
)

export const fileRoutes = defineRoutes(
  { interface: 'root', auth: { kind: 'none' }, tag: 'Service' },
  {
    'root.files': {
      at: 'GET /files/{path}',
      openEnded: true,
      // Whoever has an address was given it; a page full of images is no abuse.
      rate: 'unlimited',
      params: z.object({ path: z.string() }),
      query: z.object({
        /** Seconds since the Unix epoch. */
        expires: z.string().optional(),
        signature: z.string().optional(),
      }),
      response: z.instanceof(ReadableStream).nullable(),
      produces: 'application/octet-stream',
      errors: ['forbidden', 'not_found', 'range_not_satisfiable'],
      summary: 'An image or video, from its signed address',
      description:
        'The address comes with the object that the file belongs to, and expires. Takes `Range` (one range), `If-Range` and `If-None-Match`. Calls are not limited, and answers say nothing of a limit.',
    },
  },
)

/** The embedded identity issuer. Served only where no other issuer is configured, never in production. */
export const demoRoutes = defineRoutes(
  { interface: 'root', auth: { kind: 'none' }, rate: 'unlimited', tag: 'Identity' },
  {
    'demo.identity.token': {
      at: 'POST /demo/identity/token',
      trustsCaller: true,
      errors: ['forbidden'],
      body: z.strictObject({
        sub: z.string().min(1).max(255),
        phone_number: z.string().optional(),
        email: z.string().optional(),
        anonymous: z.boolean().optional(),
        role: z.string().max(64).optional(),
      }),
      response: z.object({
        access_token: z.string(),
        token_type: z.literal('Bearer'),
        expires_in: z.int(),
      }),
      summary: 'Issue an identity token for any subject',
      examples: { body: { sub: 'ada', email: 'ada@example.org' } },
    },
    'demo.credentials': {
      at: 'GET /demo/credentials',
      trustsCaller: true,
      errors: ['forbidden'],
      rate: 'open',
      response: z.object({
        /** Null where the service was started without one (`DOCS_API_KEY`). */
        api_key: z.string().nullable(),
      }),
      summary: 'What the documentation has filled in: the API key of the demo’s owner',
      examples: { response: { api_key: 'lk_abcd1234_…' } },
    },
    'demo.identity.keys': {
      at: 'GET /.well-known/jwks.json',
      rate: 'open',
      response: z.object({ keys: z.array(z.record(z.string(), z.unknown())) }),
      summary: "The issuer's public keys",
    },
    'demo.identity.configuration': {
      at: 'GET /.well-known/openid-configuration',
      rate: 'open',
      response: z.record(z.string(), z.unknown()),
      summary: 'OpenID discovery',
    },
  },
)
