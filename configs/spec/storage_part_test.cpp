// SPDX-License-Identifier: Apache-2.0
// Storage parts of the catalogue, and those that cannot be.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/spec/catalogue.h"
#include "configs/spec/explain.h"
#include "configs/spec/scenario_test_support.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;
using testing::HasSubstr;

TEST(StorageParts, AreThese) {
  EXPECT_THAT(catalogue_ids("storage"),
              testing::IsSupersetOf({"emmc_foresee_sld64g", "emmc_samsung_bjtd4r", "emmc_sandisk_dg4016",
                                     "nvme_sm2263xt_1tb", "sd_sandisk_extreme_a1", "spi_nand_w25n01gv",
                                     "spi_nor_w25q128", "ufs_2_1", "ufs_3_1", "ufs_4_phone"}));
}

TEST(StorageParts, HaveTheGeometryThatTheirNumbersMultiplyTo) {
  const StoragePartSpec nvme = load_storage_part("nvme_sm2263xt_1tb");
  EXPECT_EQ(page_set(nvme.flash), 32_KiB);
  EXPECT_EQ(superblock(nvme.flash), 32_KiB * 16 * 768);
  EXPECT_EQ(superblocks(nvme), 2657);  // 931 GiB x 1.07 in 384 MiB, rounded up
  const StoragePartSpec nand = load_storage_part("spi_nand_w25n01gv");
  EXPECT_EQ(superblock(nand.flash), 128_KiB);
}

/// A storage part says how it works. How fast that makes it comes out of the simulation.
TEST(StorageParts, HaveNoParameterThatIsABandwidth) {
  const std::function<void(const SchemaInfo&)> look = [&](const SchemaInfo& info) {
    for (const FieldInfo& field : info.fields) {
      EXPECT_THAT(field.type, testing::Not(HasSubstr(Grammar<BytesPerSecond>::kind()))) << field.key;
      EXPECT_THAT(field.key, testing::Not(HasSubstr("iops")));
      if (field.nested != nullptr) {
        look(*field.nested);
      }
    }
  };
  look(schema<StoragePartSpec>().info());
}

TEST(StorageParts, AreExplainedWithTheirSources) {
  const std::string text = explain("storage/ufs_4_phone");
  EXPECT_THAT(text, HasSubstr("storage part ufs_4_phone"));
  EXPECT_THAT(text, HasSubstr("MIPI M-PHY"));
}

TEST(StorageParts, HaveTheirKeysExplained) {
  const std::string text = explain("storage");
  EXPECT_THAT(text, HasSubstr("Keys of a storage part"));
  EXPECT_THAT(text, HasSubstr("controller.map_cache  "));
  EXPECT_THAT(text, HasSubstr("flash.suspend"));
}

TEST(StorageParts, InterfacesHaveTheirQueues) {
  EXPECT_EQ(deepest_queue(StorageInterface::emmc), 32);
  EXPECT_EQ(deepest_queue(StorageInterface::spi), 1);
}

struct BadPart {
  std::string base;
  std::string change;
  std::string words;
};

const BadPart kBadParts[] = {
    {"emmc_foresee_sld64g", "link: {queue_depth: 33}",
     "link.queue_depth: 33 commands are more than the 32 that emmc can have under way"},
    {"spi_nand_w25n01gv", "link: {queue_depth: 2}", "more than the 1 that spi can have under way"},
    {"emmc_foresee_sld64g", "link: {lanes: 0}", "link.lanes: '0' is out of range"},
    {"emmc_foresee_sld64g", "link: {lanes: 2}", "link.lanes: emmc has no 2 lanes; it has 1, 4, 8"},
    {"ufs_4_phone", "link: {line_bits: 7}", "link.line_bits: 7 bits on the wire cannot carry 8"},
    {"emmc_foresee_sld64g", "flash: {endurance: 0}", "flash.endurance: '0' is out of range"},
    {"emmc_foresee_sld64g", "flash: {dies: 3}", "flash.dies: 3 dies cannot share 2 channels evenly"},
    {"emmc_foresee_sld64g", "flash: {dies: 0}", "flash.dies: '0' is out of range"},
    {"emmc_foresee_sld64g", "flash: {page: 12 KiB}", "flash.page: '12 KiB' is not a power of two"},
    {"emmc_foresee_sld64g", "flash: {unit: 32 KiB}",
     "flash.unit: a page of 16 KiB is not a multiple of 32 KiB"},
    {"emmc_foresee_sld64g", "capacity: 1000001 B", "is not a multiple of a page"},
    {"emmc_foresee_sld64g", "capacity: 100 TiB", "capacity: '100 TiB' is out of range"},
    {"nvme_sm2263xt_1tb", "flash: {pages_per_block: 256}",
     "flash.pages_per_block: 256 pages are no multiple of 3 bits per cell"},
    {"nvme_sm2263xt_1tb", "flash: {slc_cache: 400 GiB}", "flash.slc_cache: '400 GiB' takes 3 times its size"},
    {"spi_nand_w25n01gv", "flash: {slc_cache: 1 MiB}", "is not for cells that hold one bit anyway"},
    {"emmc_foresee_sld64g", "flash: {over_provisioning: 0}", "flash.over_provisioning: leaves 0 blocks"},
    {"emmc_foresee_sld64g", "capacity: 8192 GiB\nflash: {unit: 512 B}",
     "flash.unit: 8 TiB of 512 B each, in blocks of 16 MiB, are more than the 4294967280 that are supported"},
    {"emmc_foresee_sld64g", "controller: {write_buffer: 4 KiB}",
     "controller.write_buffer: '4 KiB' is less than 16 KiB, which is programmed at once"},
    {"emmc_foresee_sld64g", "flash: {read: 46}", "flash.read: '46' has no unit"},
    {"emmc_foresee_sld64g", "bandwidth: 300 MB/s", "bandwidth: unknown key"},
    {"emmc_foresee_sld64g", "interface: sata", "interface: 'sata' is not one of emmc, sd, ufs, nvme, spi"},
};

using BadStorage = ScenarioTest;

TEST_F(BadStorage, IsRefused) {
  for (const BadPart& bad : kBadParts) {
    const auto path = write("part.yaml", "extends: " + bad.base + "\n" + bad.change + "\n");
    EXPECT_THAT(message_of([&] { static_cast<void>(load_storage_part(path.string())); }),
                HasSubstr(bad.words))
        << bad.change;
  }
}

}  // namespace
}  // namespace kvsim::config
