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
        service: z.string().describe('Name of the service: `larder`.'),
        version: z.string().describe('Version of the service.'),
        status: z.literal('ok').describe('Always `ok`.'),
        time: Timestamp.describe('Time of the service (UTC).'),
      }),
      summary: 'Read name, version and time of the service',
      description: 'The simplest check that the service is reachable.',
    },
    'root.openapi': {
      at: 'GET /openapi.json',
      validated: 'public',
      response: z.record(z.string(), z.unknown()),
      summary: 'Read this interface as an OpenAPI 3.1 document',
      description:
        'The document has every endpoint, field and error code of this version. The answer carries an `ETag`.',
    },
    'root.docs': {
      at: 'GET /docs',
      response: z.string(),
      produces: 'text/html',
      summary: 'Read the guides and the reference',
      description:
        'The start page for browsers, with links to the guides and the reference. The operator can switch it off (`DOCS=off`).',
    },
    'root.docs.file': {
      at: 'GET /docs/{path}',
      openEnded: true,
      // A reference is made of many files.
      rate: 'unlimited',
      params: z.object({ path: z.string().describe('Name of the file.') }),
      response: z.instanceof(ReadableStream).nullable(),
      produces: 'application/octet-stream',
      errors: ['not_found'],
      summary: 'Read a page or a file of the documentation',
      description:
        'Pages: one for each guide (`guide-…`) and one for each subject of the reference (`reference-…`). Guides carry an `ETag` and are cached for 5 minutes. Names of scripts, styles and pictures contain a hash of the content, so browsers cache these files without a limit of time. Calls are not limited, and answers carry no rate headers.',
    },
    'root.pki.ca': {
      at: 'GET /pki/ca.pem',
      response: z.string(),
      produces: 'application/x-pem-file',
      summary: 'Read the certificates of the authorities that sign the hubs’ certificates',
      description:
        'PEM, the newest first. There is one authority, and a former one during a rotation. A broker that accepts client certificates trusts them, and takes the common name (`hub-<id>`) as the user name.',
    },
    'root.pki.crl': {
      at: 'GET /pki/crl.pem',
      response: z.string(),
      produces: 'application/x-pem-file',
      summary: 'Read the lists of revoked certificates',
      description:
        'PEM (RFC 5280), one list for each authority. The lists are made for this answer and may be used for 7 days. Expired certificates are not in them.',
    },
    'root.releases.metadata': {
      at: 'GET /releases/metadata/{file}',
      params: z.object({
        file: z
          .string()
          .describe(
            'Name of the file: `1.root.json` (the next root is `2.root.json`), `timestamp.json`, `snapshot.json` or `targets.json`.',
          ),
      }),
      response: z.record(z.string(), z.unknown()),
      errors: ['not_found'],
      summary: 'Read the signed list of the hubs’ releases',
      description:
        'Metadata of The Update Framework (TUF 1.0). Hubs verify the signatures with their trusted root, and refuse older and expired lists. An installation without releases has no metadata: 404 `not_found`.',
    },
    'root.releases.file': {
      at: 'GET /releases/files/{file}',
      rate: 'download',
      params: z.object({ file: z.string().describe('Name of the release in `targets.json`.') }),
      response: z.instanceof(ReadableStream).nullable(),
      produces: 'application/octet-stream',
      errors: ['not_found', 'range_not_satisfiable'],
      summary: 'Read a release of the hub’s service',
      description:
        'The tarball that `targets.json` lists. `Range` (one range), `If-Range` and `If-None-Match` are supported, so a hub can continue an interrupted download.',
    },
    'root.webhooks.payments': {
      at: 'POST /webhooks/payments',
      rate: 'unlimited',
      rawBody: true,
      signedBy: ['Payment-Signature', 'Stripe-Signature'],
      response: z.object({ received: z.literal(true).describe('Always true.') }),
      errors: ['invalid_signature', 'invalid_json'],
      summary: 'Receive the events of the card processor',
      description:
        'Signed: header `Payment-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`, within 300 s. The header `Stripe-Signature` is accepted too. Without a signature the body is not read. An event is applied once, by its id; a repeated event gets the same answer. Calls are not limited, and answers carry no rate headers.',
    },
  },
)

export const fileRoutes = defineRoutes(
  { interface: 'root', auth: { kind: 'none' }, tag: 'Service' },
  {
    'root.files': {
      at: 'GET /files/{path}',
      openEnded: true,
      // A caller needs the address from the service, and a page may show many images.
      rate: 'unlimited',
      params: z.object({ path: z.string().describe('Place of the file, from its signed address.') }),
      query: z.object({
        expires: z
          .string()
          .optional()
          .describe(
            'Time until which the address can be used, in seconds since the Unix epoch. If it is left out: 403 `forbidden`.',
          ),
        signature: z
          .string()
          .optional()
          .describe('Signature of the service over the address. If it is left out: 403 `forbidden`.'),
      }),
      response: z.instanceof(ReadableStream).nullable(),
      produces: 'application/octet-stream',
      errors: ['forbidden', 'not_found', 'range_not_satisfiable'],
      summary: 'Read an image or video from its signed address',
      description:
        'The address comes with the object that the file belongs to, and expires. `Range` (one range), `If-Range` and `If-None-Match` are supported. Calls are not limited, and answers carry no rate headers.',
    },
  },
)

/** The embedded identity issuer. Served only if no external issuer is configured, and never in production. */
export const demoRoutes = defineRoutes(
  { interface: 'root', auth: { kind: 'none' }, rate: 'unlimited', tag: 'Identity' },
  {
    'demo.identity.token': {
      at: 'POST /demo/identity/token',
      trustsCaller: true,
      errors: ['forbidden'],
      body: z.strictObject({
        sub: z.string().min(1).max(255).describe('Subject: the identity.'),
        phone_number: z
          .string()
          .optional()
          .describe('Verified phone number of the identity. If it is left out: none.'),
        email: z
          .string()
          .optional()
          .describe('E-mail address of the identity, verified. If it is left out: none.'),
        anonymous: z
          .boolean()
          .optional()
          .describe('True issues the token of a guest. If it is left out: false.'),
        role: z
          .string()
          .max(64)
          .optional()
          .describe('Claim `role`; `admin` opens `/diag`. If it is left out: none.'),
      }),
      response: z.object({
        access_token: z.string().describe('Identity token (JWT).'),
        token_type: z.literal('Bearer').describe('Always `Bearer`.'),
        expires_in: z.int().describe('Lifetime of the token in seconds.'),
      }),
      summary: 'Issue an identity token for any subject',
      description: 'Only in a demo. An application in production gets tokens from its identity provider.',
      examples: { body: { sub: 'ada', email: 'ada@example.org' } },
    },
    'demo.credentials': {
      at: 'GET /demo/credentials',
      trustsCaller: true,
      errors: ['forbidden'],
      rate: 'open',
      response: z.object({
        api_key: z
          .string()
          .nullable()
          .describe(
            'API key of the demo’s owner; null if the service was started without one (`DOCS_API_KEY`).',
          ),
      }),
      summary: 'Read the API key of the demo’s owner',
      description: 'Only in a demo: the documentation page fills it in.',
      examples: { response: { api_key: 'lk_abcd1234_…' } },
    },
    'demo.identity.keys': {
      at: 'GET /.well-known/jwks.json',
      rate: 'open',
      response: z.object({ keys: z.array(z.record(z.string(), z.unknown())).describe('Public keys (JWK).') }),
      summary: 'Read the public keys of the demo’s issuer',
      description: 'Only in a demo.',
    },
    'demo.identity.configuration': {
      at: 'GET /.well-known/openid-configuration',
      rate: 'open',
      response: z.record(z.string(), z.unknown()),
      summary: 'Read the OpenID configuration of the demo’s issuer',
      description: 'Only in a demo.',
    },
  },
)
