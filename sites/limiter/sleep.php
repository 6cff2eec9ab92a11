<?php
sleep(3);
echo "loaded";
