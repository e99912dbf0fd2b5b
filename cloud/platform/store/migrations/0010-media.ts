import type { CloudMigration } from './migration.ts'

/** Files, and what is made of them: maintenance reports and banners. */
export const media: CloudMigration = {
  name: '0010-media',
  statements: ({ id, int, text, end }) => [
    `create table media (
      key ${text} primary key,
      state ${text} not null check (state in ('pending', 'kept', 'removed')),
      mime_type ${text} not null,
      size ${int} not null check (size >= 0),
      sha256 ${text} not null,
      created_at ${int} not null
    ) ${end}`,
    `create index media_not_kept on media (state, created_at) where state <> 'kept'`,
    `create table media_folders (folder ${text} primary key, last ${int} not null) ${end}`,
    `create table maintenance_reports (
      id ${int} primary key,
      hub_id ${int} not null references hubs (id),
      name ${text} not null,
      service_type ${text} not null,
      hub_tested ${text},
      service_start_time ${int} not null,
      service_end_time ${int},
      description ${text},
      components_serviced ${text} not null,
      submitted_by ${text} not null,
      submitted_at ${int} not null,
      created_at ${int} not null
    ) ${end}`,
    `create index maintenance_reports_by_hub on maintenance_reports (hub_id, id)`,
    `create table maintenance_media (
      report_id ${int} not null references maintenance_reports (id),
      position ${int} not null,
      key ${text} not null references media (key),
      fieldname ${text} not null,
      original_name ${text} not null,
      primary key (report_id, position)
    ) ${end}`,
    `create table banners (
      id ${id},
      hub_id ${int} not null references hubs (id),
      name ${text} not null,
      order_by ${int} not null,
      image_key ${text} not null references media (key),
      created_at ${int} not null
    ) ${end}`,
    `create index banners_by_hub on banners (hub_id, order_by, id)`,
  ],
}
