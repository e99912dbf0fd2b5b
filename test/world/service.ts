import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import type { RateClasses } from '../../protocol/contract/route.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { PageAssets } from '../../protocol/page-assets.ts'
import {
  createEmbeddedIssuer,
  type EmbeddedIssuer,
  type SigningKey,
} from '../../cloud/platform/identity/open-issuer.ts'
import { Cloud } from '../../cloud/cloud.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { identityVerifier } from '../../cloud/platform/credentials/identity-token.ts'
import { folderStore } from '../../cloud/platform/media/folder-store.ts'
import type { SendMail } from '../../cloud/operations/alarms/mail.ts'
import { logSender } from '../../cloud/people/notifications/senders.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'
import { HubHealth } from '../../protocol/model/hub-health.ts'
import { eventData } from '../../protocol/contract/event-data.ts'
import { TEST_EVENT } from '../../protocol/model/event-types.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { scopes } from '../../protocol/model/scopes.ts'
import type { CallAnswer } from './cloud.ts'
import { modelHub, register } from '../cloud/operations/ssh/model-hub.ts'
import { scriptedPoster, type ScriptedPoster } from '../cloud/events/support/poster.ts'
import type { OpenBank } from '../cloud/support/bank.ts'
import type { OpenDatabase } from './database.ts'
import { MEDIA_SECRET, mediaFolder } from '../cloud/support/media.ts'
import { schemaDifferences } from '../contract/walk/shape.ts'
import { openShop, type Shop } from './shop.ts'
import { AUDIENCE, ISSUER, testIssuer, type TestIssuer } from '../cloud/support/tokens.ts'
import { scriptedHub } from './obedient-hub.ts'

/**
 * The whole service over a shop: hub 1 was online and is disconnected now. Every answer is checked by its
 * schema.
 */
export interface Service {
  shop: Shop
  cloud: Cloud
  /** Connects the hub, which then executes every command at once (`scripted-hub.ts`). */
  connectHub: () => Promise<void>
  /** The receiver of webhooks. */
  poster: ScriptedPoster
  webhookSecret: string
  /** A folder with one file, `cloud.log`. */
  logFolder: string
  /** Calls as the owner, with every scope. */
  owner: (method: string, path: string, body?: object) => Promise<CallAnswer>
  issuer: TestIssuer
  /** A fresh token of a customer, by name; names of guests begin with `guest`. */
  tokenOf: (name: string) => Promise<string>
  /** Calls as a customer, by name. */
  customer: (name: string, method: string, path: string, body?: object) => Promise<CallAnswer>
  send: (method: string, path: string, headers: Record<string, string>, body?: string) => Promise<CallAnswer>
}

const noDocs: PageAssets = {
  page: () => ({ status: 200, headers: {}, body: '<!doctype html><title>No page here</title>' }),
  file: (name) => ({ status: name === 'main.js' ? 200 : 404, headers: {}, body: '' }),
}

const embeddedIssuer = (
  { privateKey, publicJwk }: TestIssuer,
  runtime: Runtime,
  apiKey: string,
): EmbeddedIssuer =>
  createEmbeddedIssuer({
    issuer: ISSUER,
    audience: AUDIENCE,
    key: { privateKey, publicJwk } as SigningKey,
    runtime,
    apiKey,
  })

const toLog = logSender(silentLog)

/** A folder with one log file in it. */
async function logFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'larder-logs-'))
  await writeFile(join(folder, 'cloud.log'), '{"msg":"one"}\n{"msg":"two"}\n')
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

export async function openService(
  open: OpenDatabase,
  {
    baseUrl = 'http://larder.test',
    corsOrigins = [],
    docs = noDocs,
    console,
    shopPage,
    isDemo = false,
    openBank,
    publishableKey,
    rates,
    sendMail,
  }: {
    baseUrl?: string
    corsOrigins?: readonly string[]
    docs?: PageAssets
    console?: PageAssets
    shopPage?: PageAssets
    /** Enables the embedded issuer, and the owner's key for the demo. */
    isDemo?: boolean
    /** Default: the sandbox. */
    openBank?: OpenBank
    publishableKey?: string
    rates?: RateClasses | undefined
    /** Absent: there is no mail server. */
    sendMail?: SendMail
  } = {},
): Promise<Service> {
  await stopLatest()
  const shop = await openShop(await open(), openBank && { openBank })
  await register(shop.context.db)
  const { context } = shop
  const { db, runtime } = context
  latest = db
  onTestFinished(async () => {
    if (latest !== db) return
    await filesGone(db)
    await eventsAreAsDocumented(db)
  })
  await db.kysely.updateTable('hub_sessions').set({ is_connected: 0 }).execute()
  const issuer = await testIssuer(runtime)
  const { key } = await issueApiKey(db.kysely, runtime, {
    name: 'test',
    ownerId: 1,
    scopes,
    hubs: '*',
    expiresAt: null,
  })
  const verifyIdentity = identityVerifier({
    issuer: ISSUER,
    audience: AUDIENCE,
    keys: issuer.keys,
    clock: runtime.clock,
  })
  const demo = isDemo ? embeddedIssuer(issuer, runtime, key) : undefined
  const folder = await logFolder()
  const webhookSecret = 'a secret of the processor'
  const hub = scriptedHub()
  const poster = scriptedPoster(runtime.clock)
  const cloud = new Cloud({
    context,
    broker: { kind: 'own', open: hub.openTransport },
    processId: 'test',
    enrolment: { mqttUrl: 'mqtts://larder.test:8883', brokerCa: () => undefined },
    processor: shop.services.processor,
    publishableKey,
    webhookSecret,
    verifyIdentity,
    poster,
    senders: { ios: toLog, android: toLog, web: toLog, none: toLog },
    facts: { name: 'test', pid: 1, commit: 'unknown', settings: { PORT: 0 }, logFolder: folder },
    baseUrl,
    docs,
    ...(console && { console }),
    ...(shopPage && { shop: shopPage }),
    ...(demo && {
      demoHandlers: demo.handlers,
      signIn: { ...demo.signIn, verify: verifyIdentity },
      site: demo.signIn.site,
    }),
    corsOrigins,
    rates,
    sendMail,
    mediaStore: folderStore(mediaFolder()),
    mediaSecret: MEDIA_SECRET,
    remote: modelHub().remote,
    addressOf: () => '192.0.2.1',
    checkResponses: true,
  })
  running = cloud
  onTestFinished(stopLatest)
  const tokenOf = (name: string): Promise<string> =>
    issuer.token({
      sub: name,
      email: `${name}@example.org`,
      email_verified: true,
      anonymous: name.startsWith('guest'),
    })
  const send: Service['send'] = async (method, path, headers, body) => {
    const answer = await cloud.app.request(path, { method, headers, ...(body !== undefined && { body }) })
    const text = await answer.text()
    return {
      status: answer.status,
      headers: answer.headers,
      json: text === '' ? undefined : JSON.parse(text),
    }
  }
  const sendJson = (method: string, path: string, headers: Record<string, string>, body?: object) =>
    body === undefined
      ? send(method, path, headers)
      : send(method, path, { ...headers, 'Content-Type': 'application/json' }, JSON.stringify(body))
  return {
    shop,
    cloud,
    poster,
    async connectHub() {
      cloud.gateway.start()
      const { session, health } = await db.kysely
        .updateTable('hub_sessions')
        .set({ is_connected: 1 })
        .where('hub_id', '=', 1)
        .returning(['session', 'health'])
        .executeTakeFirstOrThrow()
      hub.connect(session, HubHealth.parse(JSON.parse(health!)))
    },
    webhookSecret,
    logFolder: folder,
    send,
    owner: (method, path, body) => sendJson(method, `/api/v1/owners/${path}`, { 'X-API-Key': key }, body),
    issuer,
    tokenOf,
    customer: async (name, method, path, body) =>
      sendJson(method, path, { Authorization: `Bearer ${await tokenOf(name)}` }, body),
  }
}

/** The running service; it ends before its database. */
let running: Cloud | undefined

async function stopLatest(): Promise<void> {
  const cloud = running
  running = undefined
  await cloud?.stop()
}

/** A test may open several databases one after the other; the previous one is closed then. */
let latest: CloudDatabase | undefined

/** Checks that all events of a test have exactly the fields of the contract. */
async function eventsAreAsDocumented({ kysely }: CloudDatabase): Promise<void> {
  const rows = await kysely.selectFrom('events').select(['type', 'data']).execute()
  for (const { type, data } of rows) {
    if (type === TEST_EVENT) continue
    const shown: unknown = JSON.parse(data)
    expect([type, eventData[type].safeParse(shown).error?.issues]).toEqual([type, undefined])
    expect([type, schemaDifferences(eventData[type], shown)]).toEqual([type, []])
  }
}

/** Work of a request may outlive it: replaced files are removed before the database is closed. */
const filesGone = (db: CloudDatabase): Promise<void> =>
  vi.waitFor(async () => {
    const removed = await db.kysely.selectFrom('media').select('key').where('state', '=', 'removed').execute()
    expect(removed).toEqual([])
  })
