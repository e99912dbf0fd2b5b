import { z } from 'zod'
import { HubId, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** Enrolment of a hub's board: it has no credential yet, but a claim code that a technician typed. */
export const enrolmentRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'none' }, tag: 'Hubs' },
  {
    'owner.hubs.enroll': {
      at: 'POST /enroll',
      rate: 'lookup',
      idempotent: true,
      errors: ['invalid_claim_code'],
      body: z.strictObject({
        claim_code: z
          .string()
          .max(64)
          .describe('Claim code of the hub from `larder hubs create` or `hubs claim-code`, in any case.'),
        csr: z
          .string()
          .max(8192)
          .describe(
            'Certificate request of the board (PKCS #10, PEM). Its key is P-256, P-384, or RSA with at least 2048 bits.',
          ),
      }),
      response: z.object({
        hub_id: HubId,
        name: z.string().describe('Name of the hub.'),
        certificate: z.string().describe('Certificate of the hub (PEM), with the common name `hub-<id>`.'),
        ca: z.string().describe('Certificates of the authorities that the hub trusts (PEM).'),
        mqtt_url: z.string().describe('Address of the MQTT broker.'),
        expires_at: Timestamp.describe('End of the certificate (UTC).'),
        hardware: z
          .record(z.string(), z.unknown())
          .nullable()
          .describe(
            'Hardware description that is stored for the hub, as in its file; null if there is none.',
          ),
        settings: z
          .record(z.string(), z.string())
          .describe('Settings that are stored for the hub, by their names.'),
        desired_version: z.int().describe('Version of hardware description and settings.'),
        update_root: z
          .string()
          .nullable()
          .describe(
            'Trusted root of the signed list of releases (TUF, JSON); null before the first release.',
          ),
      }),
      summary: 'Enrol the board of a hub by its claim code',
      description:
        'A code can be used once, for 24 hours. A new enrolment revokes the former certificate of the hub. A refused code changes nothing.',
      examples: {
        body: { claim_code: 'K7QM2XRA', csr: '-----BEGIN CERTIFICATE REQUEST-----\n…' },
        response: {
          hub_id: 1,
          name: 'Central Station',
          certificate: '-----BEGIN CERTIFICATE-----\n…',
          ca: '-----BEGIN CERTIFICATE-----\n…',
          mqtt_url: 'mqtts://larder.example:8883',
          expires_at: '2026-06-01T00:00:00.000Z',
          hardware: null,
          settings: {},
          desired_version: 1,
          update_root: null,
        },
      },
    },
  },
)
